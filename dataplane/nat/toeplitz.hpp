// SPDX-License-Identifier: Apache-2.0
// The Toeplitz hash by which NICs select a receive queue (RSS). Each set bit of the input adds, by exclusive
// or, the 32 bits of the key that start at its position. The hash is therefore linear: hash(a xor b) =
// hash(a) xor hash(b). The contribution of an L4 port to the hash of a tuple does not depend on the other
// fields. Implemented with one table per four bits of input, 4.6 KB per key. The tests contain the plain
// definition.
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
    // Both addresses and both L4 ports, in wire order.
    static constexpr size_t kTupleBytesV4 = 4 + 4 + 2 + 2;
    static constexpr size_t kTupleBytesV6 = 16 + 16 + 2 + 2;
    [[nodiscard]] static constexpr size_t tuple_bytes(IpFamily family) noexcept {
        return family == IpFamily::V4 ? kTupleBytesV4 : kTupleBytesV6;
    }
    // The 32 key bits of the last input bit end four bytes after the tuple.
    [[nodiscard]] static constexpr size_t key_bytes(IpFamily family) noexcept {
        return tuple_bytes(family) + 4;
    }

    // Missing bytes of a shorter key count as zero.
    explicit Toeplitz(std::span<const uint8_t> key) noexcept;

    // The hash of a packet's tuple as on the wire.
    [[nodiscard]] uint32_t of(const packet::FlowKey& as_received) const noexcept;
    // The contribution of a destination port to the hash of a tuple with destination port 0.
    [[nodiscard]] uint32_t of_destination_port(IpFamily family, L4Port port) const noexcept {
        return of_port(tuple_bytes(family) - 2, port);
    }

 private:
    // The two bytes of `port` at this offset of the tuple.
    [[nodiscard]] uint32_t of_port(size_t at, L4Port port) const noexcept {
        const Nibble* table = &by_nibble_[2 * at];
        return table[0][port >> 12] ^ table[1][port >> 8 & 15] ^ table[2][port >> 4 & 15] ^
               table[3][port & 15];
    }
    using Nibble = std::array<uint32_t, 16>;
    std::array<Nibble, 2 * kTupleBytesV6> by_nibble_{};
};

}  // namespace penstock::nat
