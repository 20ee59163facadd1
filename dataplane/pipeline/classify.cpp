#include "dataplane/pipeline/classify.hpp"

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/vlan.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/ip_options.hpp"

namespace penstock::pipeline {
namespace {

using packet::PacketKind;

// An Ethernet address in the upper six bytes of a word, for one comparison.
PENSTOCK_ALWAYS_INLINE uint64_t word_of(const MacAddr& mac) noexcept {
    return uint64_t{load<uint32_t>(mac.bytes.data())} << 16 | uint64_t{load<uint16_t>(mac.bytes.data() + 4)}
                                                                  << 48;
}
// The same from eight bytes of a frame, of which the last two are the next field's.
PENSTOCK_ALWAYS_INLINE uint64_t mac_word_at(const uint8_t* frame) noexcept {
    return load<uint64_t>(frame) << 16;
}

// What ICMP it is that serve_icmp must look at: errors, echo requests, and what is cut too short to tell.
bool is_icmp_to_serve(const Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (parsed.kind != PacketKind::Ip || parsed.destination_is_multicast_mac) {
        return false;
    }
    const packet::IcmpRole role = packet::icmp_role(ByteView(burst.data[i], burst.length[i]), parsed);
    return role == packet::IcmpRole::Error || role == packet::IcmpRole::EchoRequest ||
           role == packet::IcmpRole::Cut;
}

// Of what Linux has sent, only TCP and UDP packets may be a flow's, whole or in fragments, and ICMP be about one. The rest leaves as it is,
// well-formed or not: its Ethernet addresses, its checksums and its purpose are Linux's business. A frame to a group is for the wire in any
// case.
void settle_from_host(Burst& burst, uint32_t i, bool is_parsed) noexcept {
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

// A frame that is broken or not for us. Those of Linux carry the port's address, which its twin has too, and are for somebody else: what
// tells them apart costs frames from the wire nothing.
PENSTOCK_NOINLINE void refuse(Burst& burst, uint32_t i, DropReason reason, bool is_parsed) noexcept {
    if (burst.arrival[i].note.has_waited()) {
        burst.fragments.add(i);
        return burst.drop(i, reason);
    }
    if (burst.arrival[i].note.from_host) {
        return settle_from_host(burst, i, is_parsed);
    }
    burst.drop(i, reason);
}

// What Linux answers for a VIP that VIP presence has put on a twin, echo requests apart: a neighbour that asks by unicast whether its entry
// still holds or answers what Linux asked in the VIP's name (RFC 4861, 7.3.3 and 7.2.2). Nothing else: the address is no host's.
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

// Hands a fragment to the worker of its datagram, once, so that all of it meet there before the first one tells whose flow it is. True: it
// has gone.
bool hand_to_owner(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const HandoffNote& note = burst.arrival[i].note;
    if (ctx.workers == 1 || note.handoffs > 0) {
        return false;
    }
    // A fragment of IPv6 may name another protocol than the first one does; the receiver does not ask (RFC 8200, 4.5).
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

PENSTOCK_NOINLINE void settle(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// A frame that has lost its priority tags is asked again what it is. Its Ethernet addresses have let it in already.
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
        return settle(ctx, burst, i);
    }
    burst.has_v6 |= parsed.family == IpFamily::V6;
    burst.flows.add(i);
}

// No Service packet: what may be the host's own goes there. Fragments that may be of a flow are looked at by fragments.cpp; Linux joins its
// own. Other ICMP and the rest are the host's too, unless only a Service has the address: then nobody may answer for it.
PENSTOCK_NOINLINE void settle(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    // What has come back from its seat was for flows when it came, and goes on whatever the configuration says now: take_fragments() has to
    // let go of its datagram.
    if (burst.arrival[i].note.has_waited()) {
        burst.fragments.add(i);
        return has_refused_options(ctx, burst.parsed[i]) ? burst.drop(i, DropReason::IpOptions) : void();
    }
    if (burst.arrival[i].note.from_host) {
        return settle_from_host(burst, i, true);
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
    if (is_icmp_to_serve(burst, i)) {
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

}  // namespace

void classify(WorkerContext& ctx, Burst& burst) noexcept {
    burst.flows.count = 0;
    burst.host_flows.count = 0;
    burst.icmp.count = 0;
    burst.moved.count = 0;
    burst.fragments.count = 0;
    burst.has_v6 = false;
    for (uint32_t i = 0; i < burst.count; ++i) {
        const Arrival& arrival = burst.arrival[i];
        const uint64_t own = word_of(ctx.ports[arrival.port.value].mac);
        const uint8_t* const frame = burst.data[i];
        packet::Parsed& parsed = burst.parsed[i];
        const auto ip_checksum =
            arrival.note.ip_checksum_checked ? packet::IpChecksum::KnownGood : packet::IpChecksum::Verify;
        if (const packet::ParseResult result =
                packet::parse(ByteView(frame, burst.length[i]), parsed, ip_checksum);
            !result) [[unlikely]] {
            refuse(burst, i, result.error(), false);
            continue;
        }
        // The parser has checked that the Ethernet header is there.
        if (mac_word_at(frame + offsetof(packet::EthernetHeader, source)) == own) [[unlikely]] {
            refuse(burst, i, DropReason::OwnSourceMac, true);
            continue;
        }
        if (mac_word_at(frame) != own && !parsed.destination_is_multicast_mac) [[unlikely]] {
            refuse(burst, i, DropReason::WrongDestinationMac, true);
            continue;
        }
        // A unicast packet in a multicast frame is never ours to translate (RFC 1122, 3.3.6).
        if (parsed.kind != PacketKind::Flow || parsed.destination_is_multicast_mac) [[unlikely]] {
            settle(ctx, burst, i);
            continue;
        }
        burst.has_v6 |= parsed.family == IpFamily::V6;
        burst.flows.add(i);
    }
}

}  // namespace penstock::pipeline
