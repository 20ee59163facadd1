// What the one parser (parse.hpp) found out about a frame. Offsets are from the frame's first byte. Everything here was length-checked:
// a later stage may read and write the headers it names without asking again.
#pragma once

#include <cstdint>

#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::packet {

enum class PacketKind : uint8_t {
    Flow,      // IPv4 TCP or UDP, whole, with a complete L4 header: `key` and all offsets are valid
    Fragment,  // an IPv4 fragment, first or later: key's addresses and protocol (whatever its number) are valid, its ports are 0
    Ip,        // other IPv4 (ICMP, SCTP, to multicast, ...): key's addresses are valid; key.protocol may be no Protocol, see ip_protocol
    Other,     // ARP, IPv6, VLAN, LLDP, ...: Linux's business; no field below is valid
};

// TCP flags as they lie in the header's fourteenth byte (RFC 9293, 3.1).
struct TcpFlags {
    uint8_t bits = 0;
    static constexpr uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kPsh = 0x08, kAck = 0x10, kUrg = 0x20, kEce = 0x40, kCwr = 0x80;
    constexpr bool has(uint8_t mask) const noexcept { return (bits & mask) == mask; }
    constexpr bool any(uint8_t mask) const noexcept { return (bits & mask) != 0; }
};

struct Parsed {
    FlowKey key;
    PacketKind kind = PacketKind::Other;
    IpFamily family = IpFamily::V4;  // of the key's addresses, without looking at them
    uint8_t ip_protocol = 0;         // the header's own number
    uint8_t ttl = 0;
    TcpFlags tcp_flags;                         // 0 for UDP
    uint16_t l3_offset = 0;                     // of the IP header
    uint16_t l4_offset = 0;                     // of the TCP or UDP header
    uint16_t payload_offset = 0;                // behind the L4 header
    uint16_t l3_length = 0;                     // total IP length, header included; the frame may be longer (Ethernet padding)
    bool destination_is_multicast_mac = false;  // broadcast included
};

}  // namespace penstock::packet
