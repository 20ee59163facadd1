// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/classify.hpp"

#include "dataplane/packet/common_packet.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/vlan.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/answers/link.hpp"
#include "dataplane/pipeline/ip_options.hpp"
#include "dataplane/pipeline/placement.hpp"

namespace penstock::pipeline {
namespace {

using packet::PacketKind;

// An Ethernet address in the upper six bytes of a word, for one comparison.
PENSTOCK_ALWAYS_INLINE uint64_t word_of(const MacAddr& mac) noexcept {
    return uint64_t{load<uint32_t>(mac.bytes.data())} << 16 | uint64_t{load<uint16_t>(mac.bytes.data() + 4)}
                                                                  << 48;
}
// Same from eight bytes of a frame, of which the last two belong to the next field.
PENSTOCK_ALWAYS_INLINE uint64_t mac_word_at(const uint8_t* frame) noexcept {
    return load<uint64_t>(frame) << 16;
}

// ICMP packets for serve_icmp: errors, echo requests, and packets too short to determine the type.
bool is_icmp_to_serve(const Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (parsed.kind != PacketKind::Ip || parsed.destination_is_multicast_mac) {
        return false;
    }
    const packet::IcmpRole role = packet::icmp_role(ByteView(burst.data[i], burst.length[i]), parsed);
    return role == packet::IcmpRole::Error || role == packet::IcmpRole::EchoRequest ||
           role == packet::IcmpRole::Cut;
}

// Of the frames sent by Linux, only TCP and UDP packets, whole or in fragments, may belong to a flow, and
// only ICMP may concern one. All others leave unchanged, well-formed or not: Linux is responsible for their
// Ethernet addresses, checksums and purpose. A multicast frame always goes to the wire.
void sort_from_host(Burst& burst, uint32_t i, bool is_parsed) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (is_parsed && is_icmp_to_serve(burst, i)) {
        return burst.icmp.add(i);
    }
    const bool may_be_of_flow = parsed.kind == PacketKind::Flow || parsed.kind == PacketKind::Fragment;
    if (!is_parsed || !may_be_of_flow || parsed.destination_is_multicast_mac) {
        return burst.relay(i);
    }
    (parsed.kind == PacketKind::Flow ? burst.host_flows : burst.fragments).add(i);
}

// A frame that is malformed or has another destination. Frames from Linux carry the port's address, which is
// also the twin's, as their source, and another host's as their destination. They are recognised only here,
// so that the check costs frames from the wire nothing.
PENSTOCK_NOINLINE void refuse(Burst& burst, uint32_t i, DropReason reason, bool is_parsed) noexcept {
    if (burst.arrival[i].note.has_waited()) {
        burst.fragments.add(i);
        return burst.drop(i, reason);
    }
    if (burst.arrival[i].note.from_host) {
        return sort_from_host(burst, i, is_parsed);
    }
    burst.drop(i, reason);
}

// IPv6 packets for Linux to a VIP that VIP presence has put on a twin, except echo requests: a neighbour
// verifies its entry by unicast, or answers a solicitation that Linux sent in the VIP's name (RFC 4861, 7.3.3
// and 7.2.2). Nothing else is delivered: the address is not a host address.
bool is_for_present_vip(const config::Snapshot& snapshot, const packet::Parsed& parsed,
                        const uint8_t* frame) noexcept {
    constexpr uint8_t kSolicitation = 135, kAdvertisement = 136;
    if (parsed.kind != PacketKind::Ip || parsed.family != IpFamily::V6 ||
        parsed.ip_protocol != kProtoIcmpv6 || parsed.l4_offset >= parsed.l3_offset + parsed.l3_length) {
        return false;
    }
    const uint8_t type = frame[parsed.l4_offset];
    return (type == kSolicitation || type == kAdvertisement) &&
           snapshot.routes->is_present_vip(parsed.key.destination);
}

// Hands a fragment, once, to the worker of its datagram, so that all fragments are collected there before the
// first one identifies the flow. Returns true if it was handed over.
bool hand_to_owner(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const HandoffNote& note = burst.arrival[i].note;
    if (ctx.workers == 1 || note.handoffs > 0) {
        return false;
    }
    // Later IPv6 fragments may name another protocol than the first one; receivers ignore it (RFC 8200, 4.5).
    const uint8_t protocol = parsed.family == IpFamily::V4 ? parsed.ip_protocol : uint8_t{0};
    const uint32_t id = packet::datagram_id(ByteView(burst.data[i], burst.length[i]), parsed);
    const WorkerId owner = ctx.owner.of_datagram(parsed.key.source, parsed.key.destination, protocol, id);
    if (owner == ctx.self) {
        return false;
    }
    burst.verdict[i] = Verdict::Handoff;
    burst.handoff_to[i] = owner;
    return true;
}

PENSTOCK_NOINLINE void sort_unusual(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// A frame without its priority tags is parsed again. Its Ethernet addresses have already been accepted.
void read_untagged(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const auto ip_checksum = burst.arrival[i].note.ip_checksum_checked ? packet::IpChecksum::KnownGood
                                                                       : packet::IpChecksum::Verify;
    packet::Parsed& parsed = burst.parsed[i];
    if (const packet::ParseResult result =
            packet::parse(ByteView(burst.data[i], burst.length[i]), parsed, ip_checksum);
        !result) {
        return burst.drop(i, result.error());
    }
    if (parsed.kind != PacketKind::Flow || parsed.destination_is_multicast_mac) {
        return sort_unusual(ctx, burst, i);
    }
    burst.flows.add(i);
}

// Not a packet of a Service flow. Packets that may be for the host are punted. Fragments that may belong to a
// flow are processed by fragments.cpp; Linux reassembles its own. Other ICMP and all other packets are also
// punted, unless the address belongs only to Services: no one may answer for such an address.
PENSTOCK_NOINLINE void sort_unusual(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    // A fragment that returns from its slot belonged to flows when it arrived. It continues whatever the
    // current configuration is, because take_fragments() must release its datagram.
    if (burst.arrival[i].note.has_waited()) {
        burst.fragments.add(i);
        return has_refused_options(ctx, burst.parsed[i]) ? burst.drop(i, DropReason::IpOptions) : void();
    }
    if (burst.arrival[i].note.from_host) {
        return sort_from_host(burst, i, true);
    }
    const packet::Parsed& parsed = burst.parsed[i];
    if (parsed.kind == PacketKind::Other && packet::is_tagged(ByteView(burst.data[i], burst.length[i]))) {
        const auto length = packet::without_priority_tags(std::span(burst.data[i], burst.length[i]));
        if (!length) {
            return burst.drop(i, length.error());
        }
        if (*length != burst.length[i]) {
            burst.length[i] = *length;
            return read_untagged(ctx, burst, i);
        }
    }
    if (has_refused_options(ctx, parsed)) {
        return burst.drop(i, DropReason::IpOptions);
    }
    if (is_icmp_to_serve(burst, i) || is_about_link_vip(ctx, burst, i)) {
        return burst.icmp.add(i);
    }
    burst.verdict[i] = Verdict::Punt;
    if (parsed.kind != PacketKind::Fragment && parsed.kind != PacketKind::Ip) {
        return;
    }
    const config::Snapshot& snapshot = *ctx.snapshot;
    const bool is_for_flows = parsed.kind == PacketKind::Fragment && !parsed.destination_is_multicast_mac &&
                              fragment_may_be_of_flow(parsed.key.source, parsed.key.destination, snapshot);
    if (is_for_flows) {
        if (hand_to_owner(ctx, burst, i)) {
            return;
        }
        burst.verdict[i] = Verdict::None;
        burst.fragments.add(i);
        return;
    }
    if (snapshot.services->is_vip(parsed.key.destination) &&
        !snapshot.routes->is_local(parsed.key.destination) &&
        !is_for_present_vip(snapshot, parsed, burst.data[i])) {
        burst.drop(i, parsed.kind == PacketKind::Fragment ? DropReason::Fragment : DropReason::VipPortClosed);
    }
}

PENSTOCK_ALWAYS_INLINE void classify_packet(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Arrival& arrival = burst.arrival[i];
    const uint64_t own = word_of(ctx.ports[arrival.port.value].mac);
    const uint8_t* const frame = burst.data[i];
    packet::Parsed& parsed = burst.parsed[i];
    const auto ip_checksum =
        arrival.note.ip_checksum_checked ? packet::IpChecksum::KnownGood : packet::IpChecksum::Verify;
    if (const packet::ParseResult result =
            packet::parse(ByteView(frame, burst.length[i]), parsed, ip_checksum);
        !result) [[unlikely]] {
        return refuse(burst, i, result.error(), false);
    }
    // The parser has checked that the Ethernet header is complete.
    if (mac_word_at(frame + offsetof(packet::EthernetHeader, source)) == own) [[unlikely]] {
        return refuse(burst, i, DropReason::OwnSourceMac, true);
    }
    if (mac_word_at(frame) != own && !parsed.destination_is_multicast_mac) [[unlikely]] {
        return refuse(burst, i, DropReason::WrongDestinationMac, true);
    }
    // A unicast packet in a multicast frame is never translated (RFC 1122, 3.3.6).
    if (parsed.kind != PacketKind::Flow || parsed.destination_is_multicast_mac) [[unlikely]] {
        return sort_unusual(ctx, burst, i);
    }
    burst.flows.add(i);
}

// The worker that handed a common packet over has decided everything that this stage decides.
PENSTOCK_NOINLINE void classify_handed(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (!burst.arrival[i].note.is_common) [[unlikely]] {
            classify_packet(ctx, burst, i);
            continue;
        }
        packet::read_common(burst.data[i], burst.parsed[i]);
        burst.flows.add(i);
    }
}

}  // namespace

void classify(WorkerContext& ctx, Burst& burst) noexcept {
    burst.flows.count = 0;
    burst.host_flows.count = 0;
    burst.icmp.count = 0;
    burst.moved.count = 0;
    burst.fragments.count = 0;
    if (burst.was_handed) [[unlikely]] {
        return classify_handed(ctx, burst);
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        classify_packet(ctx, burst, i);
    }
}

}  // namespace penstock::pipeline
