// Translating a packet: new addresses and ports, one hop less to live, and checksums that follow by the difference, so that a packet's
// payload is never read and a checksum that was wrong stays wrong for the receiver to see.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// What leaves the gateway in place of the 5-tuple that came in. Both addresses are of the packet's own family.
struct Rewrite {
    IpAddr source;
    IpAddr destination;
    L4Port source_port = 0;
    L4Port destination_port = 0;
    constexpr bool operator==(const Rewrite&) const = default;
};

// Rewrites the Flow in `frame` that `parsed` describes and takes one from its TTL, which the caller has found to be above 1 (ICMP-006). The
// caller's `parsed` then describes the packet that came in, no longer the one that leaves.
void apply(std::span<uint8_t> frame, const Parsed& parsed, const Rewrite& rewrite) noexcept;

// Takes one from the TTL of an IPv4 packet of any kind that is routed without translation. Same condition.
void decrement_ttl(std::span<uint8_t> frame, const Parsed& parsed) noexcept;

// The outgoing Ethernet addresses.
void set_ethernet(std::span<uint8_t> frame, const MacAddr& source, const MacAddr& destination) noexcept;

}  // namespace penstock::packet
