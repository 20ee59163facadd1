// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/fragments/fragments.hpp"

#include "dataplane/packet/fragment.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/opening/strays.hpp"
#include "dataplane/pipeline/other_family.hpp"
#include "dataplane/pipeline/placement.hpp"

namespace penstock::pipeline {
namespace {

using packet::PacketKind;
using stats::Counter;
using Fate = DatagramFate;

bool is_number(uint8_t ip_protocol, Protocol protocol) noexcept {
    return ip_protocol == static_cast<uint8_t>(protocol);
}

// Whether the first fragment may identify a flow. A later IPv6 fragment may name another protocol than the
// first one (RFC 8200, 4.5).
bool may_be_translated(const packet::Parsed& parsed) noexcept {
    return parsed.family == IpFamily::V6 || is_number(parsed.ip_protocol, Protocol::Tcp) ||
           is_number(parsed.ip_protocol, Protocol::Udp);
}

// Linux has the destination address, so a datagram that belongs to no flow here is for Linux.
bool may_be_hosts(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    return ctx.snapshot->routes->is_local(burst.parsed[i].key.destination);
}

// A fragment of a protocol that excludes a flow. SCTP's checksum covers the whole packet and cannot be
// updated from the change of the ports alone. The receiver of a translated SCTP fragment would therefore
// discard the packet. An untranslated one would make Linux answer with an ABORT.
void punt_or_drop_untranslated(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (burst.arrival[i].note.from_host) {
        return burst.relay(i);
    }
    const bool is_vips =
        ctx.snapshot->services->is_vip(parsed.key.destination) && !may_be_hosts(ctx, burst, i);
    if (is_vips || is_number(parsed.ip_protocol, Protocol::Sctp)) {
        return burst.drop(i, DropReason::Fragment);
    }
    burst.verdict[i] = Verdict::Punt;
}

// A later fragment from the host whose first fragment is unknown. Linux sends fragments in order, so the
// first one is not expected any more. It may have belonged to a flow, and its datagram may have been evicted
// by a flood, or had no room: sent unchanged, this fragment would reveal an endpoint's address to the client.
// An address that only Services have is not in use on the wire.
void relay_or_drop_unknown(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::FlowKey& key = burst.parsed[i].key;
    const lb::ServiceTable& services = *ctx.snapshot->services;
    const bool may_be_answer =
        ctx.snapshot->routes->is_host_address(key.source) && services.may_be_endpoint(key.source);
    if (may_be_answer || services.is_vip(key.destination)) {
        return burst.drop(i, DropReason::Fragment);
    }
    burst.relay(i);
}

// Adds the first fragment of datagram[i] to the flows.
void join_flows(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    Arrival& arrival = burst.arrival[i];
    const packet::Parsed& parsed = burst.parsed[i];
    if (arrival.note.from_host) {
        return burst.host_flows.add(i);
    }
    // The NIC could not see the ports, so the queue on which the fragment arrived does not depend on the
    // flow.
    arrival.note.receiver = receiver_of_whole(parsed.key, ctx.owner,
                                              {.receiver = arrival.note.receiver,
                                               .port = arrival.port,
                                               .promises = ctx.ports[arrival.port.value].promises});
    burst.looks_first = false;
    burst.flows.add(i);
}

void conclude(WorkerContext& ctx, Burst& burst, uint32_t i, const Fate& fate) noexcept {
    if (burst.datagram[i].is_set()) {
        ctx.fragments.decide(burst.datagram[i], fate);
        ctx.fragments.served(burst.datagram[i]);
    }
}

// Whether the connection that served a packet of this burst still exists. A new flow of the same burst may
// have evicted it from a full table, and a finished connection without a frontend is removed with its packet
// (new_flow.cpp, serve_again).
bool is_still(const WorkerContext& ctx, const conn::Found& found, const packet::FlowKey& key) noexcept {
    return ctx.connections.is_live(found.index.value) &&
           ctx.connections.at(found.index).key(found.direction) == key;
}

// The fate of the rest of a datagram whose first fragment has received its verdict.
Fate fate_after(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const Verdict verdict = burst.verdict[i];
    if (verdict == Verdict::Handoff) {
        return {
            .kind = Fate::Kind::Handed, .worker = burst.handoff_to[i], .tried = burst.arrival[i].note.tried};
    }
    if (verdict == Verdict::Drop || burst.answers[i]) {
        return {.kind = Fate::Kind::Dead};
    }
    const bool had_flow = burst.parsed[i].kind == PacketKind::Flow && burst.found[i].is_hit();
    if (had_flow && is_still(ctx, burst.found[i], burst.parsed[i].key)) {
        return {.kind = Fate::Kind::Flow,
                .direction = burst.found[i].direction,
                .connection = burst.found[i].index,
                .generation = ctx.connections.generation(burst.found[i].index)};
    }
    if (verdict == Verdict::Punt) {
        return {.kind = Fate::Kind::Host};
    }
    if (const auto gateway = stray_gateway_of(ctx, burst, i); gateway != shares::Strays::kNone) {
        return {.kind = Fate::Kind::Stray, .gateway = gateway};
    }
    return {.kind = had_flow || !burst.arrival[i].note.from_host ? Fate::Kind::Dead : Fate::Kind::Relayed};
}

// Packet i, the first fragment of a datagram of a flow, has been translated. If its source was translated,
// the whole datagram leaves with an identification of the gateway's own. The receiver reassembles fragments
// by addresses and identification, and another sender behind the same source may use the same identification
// (RFC 6864, 5.3.1).
void renumber_first(WorkerContext& ctx, Burst& burst, uint32_t i, Fate& fate) noexcept {
    const conn::Entry& connection = ctx.connections.at(fate.connection);
    if (!keeps_source(connection, fate.direction)) {
        fate.id = ctx.next_datagram_id(connection.key(conn::opposite(fate.direction)).source);
        packet::set_datagram_id(burst.data[i], *fate.id);
    }
}

void take_one(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    packet::Parsed& parsed = burst.parsed[i];
    const HandoffNote& note = burst.arrival[i].note;
    const ByteView frame(burst.data[i], burst.length[i]);
    if (!may_be_translated(parsed)) {
        return punt_or_drop_untranslated(ctx, burst, i);
    }
    const uint8_t protocol = parsed.family == IpFamily::V4 ? parsed.ip_protocol : uint8_t{0};
    const auto key = DatagramKey::of(parsed.key.source, parsed.key.destination, protocol,
                                     packet::datagram_id(frame, parsed), note);
    const auto place = packet::fragment_range(frame, parsed);
    if (!place) {
        return burst.drop(i, place.error());
    }
    if (note.from_host && !place->is_first() && !ctx.fragments.is_known(key, ctx.now)) {
        return relay_or_drop_unknown(ctx, burst, i);
    }
    const auto taken = ctx.fragments.take(key, *place, ctx.now);
    if (taken) {
        burst.datagram[i] = *taken;
    } else if (taken.error() != DropReason::FragmentsFull ||
               (!note.from_host && !may_be_hosts(ctx, burst, i))) {
        return burst.drop(i, taken.error());
    } else if (!place->is_first()) {
        return note.from_host ? relay_or_drop_unknown(ctx, burst, i) : void(burst.verdict[i] = Verdict::Punt);
    }
    if (!place->is_first()) {
        return;
    }
    if (const packet::ParseResult result = packet::read_first_fragment(frame, parsed); !result) {
        burst.drop(i, result.error());
    } else if (parsed.kind == PacketKind::Flow) {
        return join_flows(ctx, burst, i);
    } else {
        punt_or_drop_untranslated(ctx, burst, i);
    }
    conclude(ctx, burst, i, fate_after(ctx, burst, i));
}

// Translates a later fragment of a known connection in the same way as the first one. It has no ports, and no
// checksum except that of the IPv4 header.
void translate_later(WorkerContext& ctx, Burst& burst, uint32_t i, const Fate& fate) noexcept {
    // A slot without a live connection may hold part of another connection's addresses instead of a
    // generation.
    if (!ctx.connections.is_live(fate.connection.value) ||
        ctx.connections.generation(fate.connection) != fate.generation) {
        return burst.drop(i, DropReason::Fragment);
    }
    const packet::Parsed& parsed = burst.parsed[i];
    if (parsed.ttl <= 1) {
        return burst.drop(i, DropReason::TtlExpired);
    }
    const conn::Entry& connection = ctx.connections.at(fate.connection);
    const conn::Direction other = conn::opposite(fate.direction);
    const packet::FoldedDelta ip = connection.ip_delta.inverse_if(static_cast<uint16_t>(fate.direction));
    if (connection.is_mixed()) {
        // Converted before counting: a fragment that IPv4 cannot represent is dropped here and does not count
        // for the flow.
        send_to_other_family(ctx, burst, i, {fate.connection, fate.direction});
        if (burst.verdict[i] == Verdict::Drop) {
            return;
        }
    }
    ctx.connections.touch(fate.connection, ctx.now_coarse);
    stats::ServiceCounters::Passed& passed =
        ctx.counters.services[connection.service.value].passed[static_cast<size_t>(fate.direction)];
    passed.packets.add(1);
    passed.bytes.add(parsed.l3_length);
    ctx.count()[Counter::FragmentsForwarded].add(1);
    if (!connection.is_v6()) {
        const Be32 destination = connection.v4_source(other);
        packet::translate_fragment(burst.data[i], parsed, connection.v4_destination(other), destination, ip);
        forward_one(ctx, burst, i, destination, parsed.l3_length);
    } else if (!connection.is_mixed()) {
        const std::array<uint8_t, 16>& destination = connection.v6_source(other);
        packet::translate_fragment(burst.data[i], parsed, connection.v6_destination(other), destination, ip);
        forward_one(ctx, burst, i, IpAddr::v6(destination), parsed.l3_length);
    }
    if (fate.id && burst.verdict[i] != Verdict::Drop) {
        packet::set_datagram_id(burst.data[i], *fate.id);
    }
}

// Returns false if the fragment waits.
bool follow_one(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Fate& fate = ctx.fragments.fate(burst.datagram[i]);
    switch (fate.kind) {
        case Fate::Kind::Unknown:
            if (const SlotIndex slot = ctx.fragments.wait(burst.datagram[i], ctx.now); slot.is_set()) {
                burst.verdict[i] = Verdict::Await;
                burst.slot[i] = slot;
                ctx.count()[Counter::FragmentsHeld].add(1);
                return false;
            }
            may_be_hosts(ctx, burst, i) ? void(burst.verdict[i] = Verdict::Punt)
                                        : burst.drop(i, DropReason::FragmentsFull);
            break;
        case Fate::Kind::Flow:
            translate_later(ctx, burst, i, fate);
            break;
        case Fate::Kind::Handed:
            burst.verdict[i] = Verdict::Handoff;
            burst.handoff_to[i] = fate.worker;
            burst.arrival[i].note.tried = fate.tried;
            break;
        case Fate::Kind::Host:
            burst.verdict[i] = Verdict::Punt;
            break;
        case Fate::Kind::Relayed:
            burst.relay(i);
            break;
        case Fate::Kind::Stray:
            forward_stray_fragment(ctx, burst, i, fate.gateway);
            break;
        case Fate::Kind::Dead:
            burst.drop(i, DropReason::Fragment);
            break;
    }
    return true;
}

// follow_one() for a worker with flow records.
bool follow_counted(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Fate fate = ctx.fragments.fate(burst.datagram[i]);
    const stats::Tally& forwarded = ctx.count()[Counter::FragmentsForwarded];
    const uint64_t before = forwarded.read();
    const uint32_t bytes = burst.parsed[i].l3_length;
    const bool has_followed = follow_one(ctx, burst, i);
    if (forwarded.read() != before) {
        ctx.flow_log->count(fate.connection, fate.direction, bytes, ctx.now);
    }
    return has_followed;
}

template <bool (*follow)(WorkerContext&, Burst&, uint32_t) noexcept>
PENSTOCK_ALWAYS_INLINE void follow_all(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.fragments.count; ++at) {
        const uint32_t i = burst.fragments.at[at];
        if (burst.parsed[i].kind != PacketKind::Flow) {
            continue;
        }
        Fate fate = fate_after(ctx, burst, i);
        if (fate.kind == Fate::Kind::Flow && burst.datagram[i].is_set()) {
            renumber_first(ctx, burst, i, fate);
        }
        conclude(ctx, burst, i, fate);
        if ((fate.kind == Fate::Kind::Flow || fate.kind == Fate::Kind::Stray) &&
            !burst.datagram[i].is_set()) {
            burst.drop(i, DropReason::FragmentsFull);  // the rest could not follow it
        }
    }
    for (uint32_t at = 0; at < burst.fragments.count; ++at) {
        const uint32_t i = burst.fragments.at[at];
        if (burst.under_way(i) && follow(ctx, burst, i)) {
            ctx.fragments.served(burst.datagram[i]);
        }
    }
}

}  // namespace

void take_fragments(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.fragments.count; ++at) {
        const uint32_t i = burst.fragments.at[at];
        const HandoffNote& note = burst.arrival[i].note;
        burst.datagram[i] = note.waited_for;
        if (!note.has_waited()) {
            if (burst.under_way(i)) {
                take_one(ctx, burst, i);
            }
        } else if (!burst.under_way(i)) {
            ctx.fragments.served(note.waited_for);  // dropped by a change in between: options, the blocklist
        }
    }
}

void follow_fragments(WorkerContext& ctx, Burst& burst) noexcept {
    follow_all<follow_one>(ctx, burst);
}

void follow_counted_fragments(WorkerContext& ctx, Burst& burst) noexcept {
    follow_all<follow_counted>(ctx, burst);
}

}  // namespace penstock::pipeline
