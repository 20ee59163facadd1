// What the one parser (parse.hpp) found out about a frame. Offsets are from the frame's first byte. Everything here was length-checked:
// a later stage may read and write the headers it names without asking again.
#pragma once

#include <cstdint>

#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::packet {

enum class PacketKind : uint8_t {
    Flow,  // TCP, UDP or SCTP with a complete L4 header: `key` and all offsets are valid. Whole, or (read_first_fragment) a first fragment
    Fragment,  // a fragment, first or later: key's addresses and protocol (whatever its number) are valid, its ports are 0
    Ip,  // other IP (ICMP, to multicast, ...): key's addresses are valid; key.protocol may be no Protocol, see ip_protocol
    Other,  // ARP, VLAN, LLDP, ...: Linux's business; no field below is valid
};

// TCP flags as they lie in the header's fourteenth byte (RFC 9293, 3.1).
struct TcpFlags {
    uint8_t bits = 0;
    static constexpr uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kPsh = 0x08, kAck = 0x10, kUrg = 0x20,
                             kEce = 0x40, kCwr = 0x80;
    constexpr bool has(uint8_t mask) const noexcept { return (bits & mask) == mask; }
    constexpr bool any(uint8_t mask) const noexcept { return (bits & mask) != 0; }
    constexpr bool operator==(const TcpFlags&) const = default;
};

// What the chunks of an SCTP packet mean for its association; the weightiest where there are several (sctp.hpp).
enum class SctpEvent : uint8_t {
    None,  // data, acknowledgements, heartbeats, and whatever a later RFC adds; also what is no SCTP
    Init,
    InitAck,
    CookieEcho,
    CookieAck,
    Shutdown,
    ShutdownAck,
    ShutdownComplete,
    Abort,
};
inline constexpr uint8_t kSctpEvents = 9;

// Ordered so that the constants of the common packet lie together and are written together.
struct alignas(8) Parsed {
    FlowKey key;
    PacketKind kind = PacketKind::Other;
    IpFamily family = IpFamily::V4;  // of the key's addresses, without looking at them
    uint8_t ttl = 0;                 // or hop limit
    uint8_t ip_protocol = 0;         // the header's own number; of IPv6 the last header's that was walked to
    uint16_t l3_offset = 0;          // of the IP header
    uint16_t l4_offset =
        0;  // behind the IP header and its options or extension headers: the TCP or UDP header of a Flow
    uint16_t payload_offset = 0;  // behind the L4 header
    uint16_t l3_length =
        0;  // the whole IP packet, its header included; the frame may be longer (Ethernet padding)
    TcpFlags tcp_flags;                         // 0 for UDP and SCTP
    bool destination_is_multicast_mac = false;  // broadcast included
    SctpEvent sctp_event = SctpEvent::None;
    bool sctp_reflects_tag : 1 =
        false;                     // the T bit of an ABORT or SHUTDOWN COMPLETE: the tag is the sender's own
    bool is_fragment : 1 = false;  // so its L4 checksum and lengths are about more than it holds
    constexpr bool operator==(const Parsed&) const = default;
};

}  // namespace penstock::packet
