// SPDX-License-Identifier: Apache-2.0
// The result of the parser (parse.hpp). Offsets are from the frame's first byte. All lengths were checked: a
// later stage may read and write the named headers without further checks.
#pragma once

#include <cstdint>

#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::packet {

enum class PacketKind : uint8_t {
    // TCP, UDP or SCTP with a complete L4 header: `key` and all offsets are valid. Whole, or a first fragment
    // (read_first_fragment).
    Flow,
    // A fragment, first or later: key's addresses and protocol (of any number) are valid, its ports are 0.
    Fragment,
    // Other IP (ICMP, multicast, ...): key's addresses are valid; key.protocol may be outside Protocol, see
    // ip_protocol.
    Ip,
    // ARP, VLAN, LLDP, ...: for Linux; no field below is valid.
    Other,
};

// TCP flags, as in the header's fourteenth byte (RFC 9293, 3.1).
struct TcpFlags {
    uint8_t bits = 0;
    static constexpr uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kPsh = 0x08, kAck = 0x10, kUrg = 0x20,
                             kEce = 0x40, kCwr = 0x80;
    constexpr bool has(uint8_t mask) const noexcept { return (bits & mask) == mask; }
    constexpr bool any(uint8_t mask) const noexcept { return (bits & mask) != 0; }
    constexpr bool operator==(const TcpFlags&) const = default;
};

// The event that the chunks of an SCTP packet mean for its association; of several, the most significant
// (sctp.hpp).
enum class SctpEvent : uint8_t {
    None,  // data, SACK, HEARTBEAT and chunk types of later RFCs; also any packet that is not SCTP
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

// Ordered so that the fields that are constant for common packets are adjacent and written together.
struct alignas(8) Parsed {
    FlowKey key;
    PacketKind kind = PacketKind::Other;
    IpFamily family = IpFamily::V4;  // of the key's addresses, available without reading them
    uint8_t ttl = 0;                 // or hop limit
    uint8_t ip_protocol = 0;         // from the header; in IPv6 that of the last header walked
    uint16_t l3_offset = 0;          // of the IP header
    // Behind the IP header and its options or extension headers: the TCP or UDP header of a Flow.
    uint16_t l4_offset = 0;
    uint16_t payload_offset = 0;  // behind the L4 header
    // The whole IP packet including its header; the frame may be longer (Ethernet padding).
    uint16_t l3_length = 0;
    TcpFlags tcp_flags;                         // 0 for UDP and SCTP
    bool destination_is_multicast_mac = false;  // broadcast included
    SctpEvent sctp_event = SctpEvent::None;
    // The T bit of an ABORT or SHUTDOWN COMPLETE: the tag is the sender's own.
    bool sctp_reflects_tag : 1 = false;
    bool is_fragment : 1 = false;  // its L4 checksum and lengths cover more than this fragment
    constexpr bool operator==(const Parsed&) const = default;
};

}  // namespace penstock::packet
