// One direction of a connection: the 5-tuple, both families in one shape, without padding that could be hashed by accident.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "dataplane/base/bytes.hpp"
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
    std::array<uint8_t, 3> zero{};  // keeps the key at five whole words; always 0

    constexpr bool operator==(const FlowKey&) const = default;

    // The same packet's answer: source and destination exchanged.
    [[nodiscard]] constexpr FlowKey reversed() const noexcept { return {destination, source, destination_port, source_port, protocol, {}}; }
    // "TCP 192.0.2.1:40000 -> 80.11.12.10:80"
    [[nodiscard]] std::string to_string() const;
};
static_assert(sizeof(FlowKey) == 40);
static_assert(std::has_unique_object_representations_v<FlowKey>, "padding would be hashed");

[[nodiscard]] inline uint64_t hash_of(const FlowKey& key, const HashKey& secret) noexcept {
    return siphash13(secret, load<std::array<uint64_t, 5>>(&key));
}
// For placing a client's packets on one worker whatever their ports are.
[[nodiscard]] inline uint64_t hash_of(const IpAddr& address, const HashKey& secret) noexcept {
    return siphash13(secret, load<std::array<uint64_t, 2>>(&address));
}

}  // namespace penstock::packet
