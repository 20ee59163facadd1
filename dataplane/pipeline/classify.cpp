#include "dataplane/pipeline/classify.hpp"

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::pipeline {
namespace {

using packet::PacketKind;

// An Ethernet address in the upper six bytes of a word, for one comparison.
PENSTOCK_ALWAYS_INLINE uint64_t word_of(const MacAddr& mac) noexcept {
    return uint64_t{load<uint32_t>(mac.bytes.data())} << 16 | uint64_t{load<uint16_t>(mac.bytes.data() + 4)} << 48;
}
// The same from eight bytes of a frame, of which the last two are the next field's.
PENSTOCK_ALWAYS_INLINE uint64_t mac_word_at(const uint8_t* frame) noexcept {
    return load<uint64_t>(frame) << 16;
}

// Of what Linux has sent, only whole TCP and UDP packets may be a flow's. The rest leaves as it is, well-formed or not: its Ethernet
// addresses, its checksums and its purpose are Linux's business. A frame to a group is for the wire in any case.
void settle_from_host(Burst& burst, uint32_t i, bool is_parsed) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (!is_parsed || parsed.kind != PacketKind::Flow || parsed.destination_is_multicast_mac) {
        return burst.relay(i);
    }
    burst.host_flows.add(i);
}

// A frame that is broken or not for us. Those of Linux carry the port's address, which its twin has too, and are for somebody else: what
// tells them apart costs frames from the wire nothing.
PENSTOCK_NOINLINE void refuse(Burst& burst, uint32_t i, DropReason reason, bool is_parsed) noexcept {
    if (burst.arrival[i].note.from_host) {
        return settle_from_host(burst, i, is_parsed);
    }
    burst.drop(i, reason);
}

// What Linux answers for a VIP that VIP presence has put on a twin: echo requests, and a neighbour that asks by unicast whether its entry
// still holds or answers what Linux asked in the VIP's name (RFC 4861, 7.3.3 and 7.2.2). Nothing else: the address is no host's.
bool is_for_present_vip(const config::Snapshot& snapshot, const packet::Parsed& parsed, const uint8_t* frame) noexcept {
    constexpr uint8_t kIcmp = 1, kIcmpv6 = 58;
    constexpr uint8_t kEcho = 8, kEcho6 = 128, kSolicitation = 135, kAdvertisement = 136;
    if (parsed.kind != PacketKind::Ip || parsed.l4_offset >= parsed.l3_offset + parsed.l3_length) {
        return false;
    }
    const uint8_t type = frame[parsed.l4_offset];
    const bool is_asked = parsed.family == IpFamily::V4
                              ? parsed.ip_protocol == kIcmp && type == kEcho
                              : parsed.ip_protocol == kIcmpv6 && (type == kEcho6 || type == kSolicitation || type == kAdvertisement);
    return is_asked && snapshot.routes->is_present_vip(parsed.key.destination);
}

// Hands what has no L4 ports of its own to the worker whose flow it may be of, once: fragments by their datagram, so that all of it meet,
// ICMP errors by the packet that they quote. True: it has gone.
bool hand_to_owner(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const Arrival& arrival = burst.arrival[i];
    if (ctx.workers == 1 || arrival.note.handoffs > 0 || parsed.destination_is_multicast_mac) {
        return false;
    }
    const ByteView frame(burst.data[i], burst.length[i]);
    WorkerId owner;
    if (parsed.kind == PacketKind::Fragment) {
        if (may_be_of_flow(parsed.key.destination, *ctx.snapshot)) {
            // A fragment of IPv6 may name another protocol than the first one does; the receiver does not ask (RFC 8200, 4.5).
            const uint8_t protocol = parsed.family == IpFamily::V4 ? parsed.ip_protocol : uint8_t{0};
            owner = ctx.owner.of_datagram(parsed.key.source, parsed.key.destination, protocol, packet::datagram_id(frame, parsed));
        }
    } else if (const auto quoted = packet::quoted_flow(frame, parsed)) {
        const Arrived arrived{.receiver = arrival.note.receiver, .port = arrival.port, .promises = ctx.ports[arrival.port.value].promises};
        owner = place_error(*quoted, *ctx.snapshot, ctx.owner, arrived);
    }
    if (!owner.is_set() || owner == ctx.self) {
        return false;
    }
    burst.verdict[i] = Verdict::Handoff;
    burst.handoff_to[i] = owner;
    return true;
}

// No Service packet: what may be the host's own goes there. A fragment carries no ports (or its rest would not), so it cannot be matched to
// a Service or a flow; Linux joins its own. ICMP and the rest are the host's too, unless only a Service has the address: then nobody may
// answer for it.
PENSTOCK_NOINLINE void settle(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    if (burst.arrival[i].note.from_host) {
        return settle_from_host(burst, i, true);
    }
    const packet::Parsed& parsed = burst.parsed[i];
    burst.verdict[i] = Verdict::Punt;
    if (parsed.kind != PacketKind::Fragment && parsed.kind != PacketKind::Ip) {
        return;
    }
    if (hand_to_owner(ctx, burst, i)) {
        return;
    }
    const config::Snapshot& snapshot = *ctx.snapshot;
    if (snapshot.services->is_vip(parsed.key.destination) && !snapshot.routes->is_local(parsed.key.destination) &&
        !is_for_present_vip(snapshot, parsed, burst.data[i])) {
        burst.drop(i, parsed.kind == PacketKind::Fragment ? DropReason::Fragment : DropReason::VipPortClosed);
    }
}

}  // namespace

void classify(WorkerContext& ctx, Burst& burst) noexcept {
    burst.flows.count = 0;
    burst.host_flows.count = 0;
    burst.has_v6 = false;
    for (uint32_t i = 0; i < burst.count; ++i) {
        const Arrival& arrival = burst.arrival[i];
        const uint64_t own = word_of(ctx.ports[arrival.port.value].mac);
        const uint8_t* const frame = burst.data[i];
        packet::Parsed& parsed = burst.parsed[i];
        const auto ip_checksum = arrival.note.ip_checksum_checked ? packet::IpChecksum::KnownGood : packet::IpChecksum::Verify;
        if (const packet::ParseResult result = packet::parse(ByteView(frame, burst.length[i]), parsed, ip_checksum); !result) [[unlikely]] {
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
