// The hash by which NICs choose a receive queue (RSS): each set bit of the input adds, by exclusive or, the 32 bits of the key that begin
// at its position. So it is linear: hash(a xor b) = hash(a) xor hash(b), and what an L4 port adds to the hash of a tuple does not depend on
// the rest of it. Here by a table for each four bits of the input, 4.6 KB a key; the definition itself is in the tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::nat {

class Toeplitz {
 public:
    // Both addresses and both L4 ports, in the order of the wire.
    static constexpr size_t kTupleBytesV4 = 4 + 4 + 2 + 2;
    static constexpr size_t kTupleBytesV6 = 16 + 16 + 2 + 2;
    [[nodiscard]] static constexpr size_t tuple_bytes(IpFamily family) noexcept {
        return family == IpFamily::V4 ? kTupleBytesV4 : kTupleBytesV6;
    }
    // The last bit's 32 end four bytes behind the tuple.
    [[nodiscard]] static constexpr size_t key_bytes(IpFamily family) noexcept {
        return tuple_bytes(family) + 4;
    }

    // What a shorter key lacks counts as zero.
    explicit Toeplitz(std::span<const uint8_t> key) noexcept;

    // Of a packet's tuple as the NIC sees it on the wire.
    [[nodiscard]] uint32_t of(const packet::FlowKey& as_received) const noexcept;
    // What a destination port adds to the hash of a tuple with destination port 0.
    [[nodiscard]] uint32_t of_destination_port(IpFamily family, L4Port port) const noexcept {
        return of_port(tuple_bytes(family) - 2, port);
    }

 private:
    // The two bytes of `port` at that offset of the tuple.
    [[nodiscard]] uint32_t of_port(size_t at, L4Port port) const noexcept {
        const Nibble* table = &by_nibble_[2 * at];
        return table[0][port >> 12] ^ table[1][port >> 8 & 15] ^ table[2][port >> 4 & 15] ^
               table[3][port & 15];
    }
    using Nibble = std::array<uint32_t, 16>;
    std::array<Nibble, 2 * kTupleBytesV6> by_nibble_{};
};

}  // namespace penstock::nat
