// SPDX-License-Identifier: Apache-2.0
// The key of a flow (one direction of a connection): the 5-tuple, with the same layout for both families, and
// without padding that could be hashed by accident.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::packet {

struct FlowKey {
    IpAddr source;
    IpAddr destination;
    L4Port source_port = 0;       // host order
    L4Port destination_port = 0;  // host order
    Protocol protocol = Protocol::Tcp;
    std::array<uint8_t, 3> zero{};  // pads the key to five whole words; always 0

    constexpr bool operator==(const FlowKey&) const = default;

    // The key of the replies: source and destination exchanged.
    [[nodiscard]] constexpr FlowKey reversed() const noexcept {
        return {destination, source, destination_port, source_port, protocol, {}};
    }
    // "TCP 192.0.2.1:40000 -> 80.11.12.10:80"
    [[nodiscard]] std::string to_string() const;
};
static_assert(sizeof(FlowKey) == 40);
static_assert(std::has_unique_object_representations_v<FlowKey>, "padding would be hashed");

// For the connection table. The hashed words of an IPv4 key are its addresses (source in the low half) and
// the rest of the key.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t v4_addresses(const FlowKey& key) noexcept {
    return key.source.v4_wire().raw() | uint64_t{key.destination.v4_wire().raw()} << 32;
}
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t port_pair(const FlowKey& key) noexcept {
    return load<uint32_t>(&key.source_port);
}
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hashed_rest(uint32_t ports, Protocol protocol) noexcept {
    return ports | uint64_t{static_cast<uint8_t>(protocol)} << 32;
}
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t v4_hash_of(const FlowKey& key, const KeyedMix& mix) noexcept {
    return mix.of(v4_addresses(key), hashed_rest(port_pair(key), key.protocol));
}
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t v6_hash_of(const FlowKey& key, const KeyedMix& mix) noexcept {
    const auto words = load<std::array<uint64_t, 4>>(&key);
    return mix.of(words[0], words[1], words[2], words[3], hashed_rest(port_pair(key), key.protocol));
}
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash_of(const FlowKey& key, const KeyedMix& mix) noexcept {
    return key.source.is_v4() ? v4_hash_of(key, mix) : v6_hash_of(key, mix);
}
// For assigning all packets of a client to one worker, independently of their ports.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash_of(const IpAddr& address, const KeyedMix& mix) noexcept {
    return mix.of(load<uint64_t>(address.bytes().data()), load<uint64_t>(address.bytes().data() + 8));
}

}  // namespace penstock::packet
