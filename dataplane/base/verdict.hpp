// SPDX-License-Identifier: Apache-2.0
// Verdicts of packets and reasons of drops. Every packet ends in a named verdict. PENSTOCK_DROP_REASONS is
// the single list of reasons. It generates the enum, the counter's name, the metric label and the CLI line; a
// test compares docs/counters.md with this list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

namespace penstock {

// The result for a packet in a burst. `None`: a later stage decides.
enum class Verdict : uint8_t {
    None,      // still in the pipeline
    Transmit,  // leaves through a NicPort
    Split,     // leaves in IP fragments, at once or when its next hop is resolved
    Punt,      // goes to Linux through the TAP twin
    Handoff,   // goes to the worker that owns its flow
    Hold,      // waits until its next hop is resolved
    Await,     // a fragment, waits for the first fragment of its datagram
    Drop,      // ends here, counted under a DropReason
};

// X(Enumerator, counter_name, meaning). The order is that of `penstockctl stats`; append only within a group.
#define PENSTOCK_DROP_REASONS(X)                                                                             \
    /* the frame itself */                                                                                   \
    X(FrameTooShort, "frame_too_short", "the frame ends within one of its headers")                          \
    X(FrameShorterThanIp, "frame_shorter_than_ip",                                                           \
      "the IP length exceeds the frame: it was cut on the way in (is the port's MTU too small?)")            \
    X(OwnSourceMac, "own_source_mac",                                                                        \
      "the frame carries the port's own source address: an echo of a frame sent by this host")               \
    X(WrongDestinationMac, "wrong_destination_mac", "the frame is addressed to another host")                \
    X(BadIpHeader, "bad_ip_header", "IP version, header length or total length contradict each other")       \
    X(BadIpChecksum, "bad_ip_checksum", "the IPv4 header checksum is wrong")                                 \
    X(BadL4Header, "bad_l4_header",                                                                          \
      "TCP or UDP header length or SCTP's chunks contradict the packet, or a port is 0")                     \
    X(BadL4Checksum, "bad_l4_checksum",                                                                      \
      "the transport's checksum is wrong (checked only before an answer is made from the packet)")           \
    X(MartianSource, "martian_source",                                                                       \
      "the source address is loopback, multicast, not a host's, equal to the destination, or one of the "    \
      "gateway's own")                                                                                       \
    X(SourceBlocked, "source_blocked", "the source address is on the blocklist")                             \
    X(Fragment, "fragment",                                                                                  \
      "an IP fragment to a Service or a SNAT address, whose datagram belongs to no flow")                    \
    X(BadFragment, "bad_fragment", "a fragment with a length or an offset that is impossible in a datagram") \
    X(FragmentTooSmall, "fragment_too_small",                                                                \
      "a first fragment without its whole L4 header, or a later one that would overwrite it")                \
    X(FragmentOverlap, "fragment_overlap", "a fragment that overlaps another one of its datagram")           \
    X(FragmentExpired, "fragment_expired", "the first fragment of its datagram did not arrive in time")      \
    X(FragmentsFull, "fragments_full",                                                                       \
      "too many fragments wait for the first one of their datagram, or too many datagrams are in progress")  \
    X(IpOptions, "ip_options",                                                                               \
      "IPv4 options that are not forwarded: a source route, or any option with --ip-options drop")           \
    X(TtlExpired, "ttl_expired", "TTL ran out at the gateway")                                               \
    X(MappedAddress, "mapped_address",                                                                       \
      "an IPv6 header holds an IPv4-mapped address (::ffff:0:0/96), which is not allowed on the wire")       \
    X(BadExtensionHeader, "bad_extension_header",                                                            \
      "an IPv6 extension header is truncated, misplaced, one of too many, or has no equivalent in IPv4")     \
    X(SourceRouted, "source_routed", "an IPv6 routing header of type 0, which is forbidden (RFC 5095)")      \
    X(NoUdpChecksum, "no_udp_checksum",                                                                      \
      "a UDP datagram over IPv6 without a checksum (RFC 8200, 8.1), or a fragment of one over IPv4 that is " \
      "to become IPv6")                                                                                      \
    X(FrameTooLong, "frame_too_long", "a frame in several receive buffers that does not fit into one")       \
    X(TooManyTags, "too_many_tags",                                                                          \
      "more than two VLAN tags: priority tags, or any tags if a blocklist is checked behind them")           \
    /* service and flow */                                                                                   \
    X(VipPortClosed, "vip_port_closed",                                                                      \
      "the address is a Service's, but no Service declares this protocol and port")                          \
    X(SourceNotAllowed, "source_not_allowed",                                                                \
      "loadBalancerSourceRanges of the Service do not list this client")                                     \
    X(NoLocalEndpoint, "no_local_endpoint",                                                                  \
      "externalTrafficPolicy Local, and every usable endpoint is on another node")                           \
    X(NoEndpoint, "no_endpoint", "the Service has no usable endpoint and is set to drop, not to reject")     \
    X(RejectLimited, "reject_limited",                                                                       \
      "an answer (RST or ICMP) was due, but the rate limit of answers is reached")                           \
    X(RejectNotAllowed, "reject_not_allowed",                                                                \
      "an answer was due, but this packet must never be answered (a RST, a broadcast, a bad checksum)")      \
    X(ResetLimited, "reset_limited",                                                                         \
      "a segment of a connection under reset was not answered: the rate limit of resets is reached")         \
    X(BadIcmp, "bad_icmp",                                                                                   \
      "an ICMP message to a Service or a SNAT address that is cut off, or whose checksum is wrong")          \
    X(IcmpUnknownFlow, "icmp_unknown_flow", "an ICMP error that quotes no flow of the gateway")              \
    X(IcmpSearchLimited, "icmp_search_limited",                                                              \
      "an ICMP error whose flow was not searched on all workers: the rate limit of such searches is "        \
      "reached")                                                                                             \
    X(IcmpNotTranslated, "icmp_not_translated",                                                              \
      "an ICMP error without an equivalent in the other IP family, which its flow's other side uses")        \
    X(VipEcho, "vip_echo", "an echo request to a Service's address, with --vip-icmp-echo drop")              \
    X(SctpNoAssociation, "sctp_no_association",                                                              \
      "an SCTP packet to a Service that neither belongs to an association nor begins one")                   \
    X(SctpWrongTag, "sctp_wrong_tag", "an SCTP packet whose verification tag is not its association's")      \
    X(InvalidTcpFlags, "invalid_tcp_flags", "a combination of TCP flags that no stack sends")                \
    X(ReversePath, "reverse_path",                                                                           \
      "the source address has no route, or its route does not use the port on which the packet arrived "     \
      "(--reverse-path)")                                                                                    \
    X(StrayReply, "stray_reply",                                                                             \
      "a packet from an endpoint's port that belongs to no flow: it would expose the endpoint's address")    \
    X(StrayTtl, "stray_ttl",                                                                                 \
      "a packet of another gateway's share whose TTL ran out before it reached that gateway: gateways with " \
      "different plans forward it to one another")                                                           \
    X(ConnectionTableFull, "connection_table_full",                                                          \
      "this worker's connection table had no room for a new flow")                                           \
    X(SnatPortsExhausted, "snat_ports_exhausted", "every SNAT port towards this endpoint is in use")         \
    X(NoSnatAddress, "no_snat_address", "no SNAT address of the endpoint's family is configured")            \
    X(BadLinkMessage, "bad_link_message",                                                                    \
      "ARP or neighbour discovery about a VIP that workers answer for, against a rule of its RFC")           \
    /* forwarding */                                                                                         \
    X(NoRoute, "no_route", "Linux has no route to the address through a port of the gateway")                \
    X(PacketTooBig, "packet_too_big", "the packet exceeds the MTU of its egress port")                       \
    X(NextHopUnresolved, "next_hop_unresolved", "the next hop did not answer ARP or NDP in time")            \
    X(PendingFull, "pending_full", "too many packets already wait for next hops")                            \
    X(HandoffRingFull, "handoff_ring_full", "the owning worker did not take packets as fast as they came")   \
    X(HandoffLoop, "handoff_loop", "a packet was handed off more often than is possible for its flow")       \
    X(PuntRingFull, "punt_ring_full", "Linux did not take packets as fast as they came")                     \
    X(PuntControlFull, "punt_control_full",                                                                  \
      "Linux did not take control packets (ARP, ND, BGP, BFD and the like) as fast as they came")            \
    X(PuntFailed, "punt_failed", "the TAP twin refused a frame")                                             \
    X(HostFrameInvalid, "host_frame_invalid", "Linux sent a frame to the twin that does not fit the port")   \
    X(FromHostRingFull, "from_host_ring_full",                                                               \
      "Linux sent frames through the twin faster than a worker took them")                                   \
    X(PortRemoved, "port_removed", "the device of the egress port was removed")                              \
    X(TxQueueFull, "tx_queue_full", "the NIC did not take packets as fast as they were ready")               \
    X(NoBuffer, "no_buffer", "no packet buffer was free, or a buffer has no room for a longer header")       \
    X(NoVerdict, "no_verdict", "no stage has set a verdict for the packet: a bug in penstockd")

enum class DropReason : uint8_t {
#define PENSTOCK_X(name, counter, meaning) name,
    PENSTOCK_DROP_REASONS(PENSTOCK_X)
#undef PENSTOCK_X
};

inline constexpr size_t kDropReasons = 0
#define PENSTOCK_X(name, counter, meaning) +1
    PENSTOCK_DROP_REASONS(PENSTOCK_X)
#undef PENSTOCK_X
    ;

struct DropReasonText {
    std::string_view counter;  // "no_route": counter, metric label and CLI name
    std::string_view meaning;  // description in one line
};
extern const std::array<DropReasonText, kDropReasons> kDropReasonTexts;

// The error value of a function that returns std::expected<T, DropReason>.
[[nodiscard]] inline std::unexpected<DropReason> drop(DropReason reason) noexcept {
    return std::unexpected(reason);
}

[[nodiscard]] inline const DropReasonText& text_of(DropReason reason) noexcept {
    return kDropReasonTexts[static_cast<size_t>(reason)];
}

[[nodiscard]] const char* to_string(Verdict verdict) noexcept;

}  // namespace penstock
