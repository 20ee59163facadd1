// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/new_flow.hpp"

#include <array>
#include <memory>
#include <optional>

#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/nat/masquerade.hpp"
#include "dataplane/nat/source_search.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/sctp.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/answers/own_errors.hpp"
#include "dataplane/pipeline/answers/reject.hpp"
#include "dataplane/pipeline/conn_lookup.hpp"
#include "dataplane/pipeline/hits.hpp"
#include "dataplane/pipeline/offered_mss.hpp"
#include "dataplane/pipeline/opening/admit.hpp"
#include "dataplane/pipeline/opening/opening.hpp"
#include "dataplane/pipeline/opening/pick_up.hpp"
#include "dataplane/pipeline/opening/reclaim.hpp"
#include "dataplane/pipeline/opening/strays.hpp"
#include "dataplane/pipeline/opening/take_over.hpp"
#include "dataplane/pipeline/track.hpp"
#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {
namespace {

using packet::FlowKey;
using stats::Counter;

// Ports tried for a flow to an endpoint on the host before the flow is dropped.
constexpr uint8_t kOwnPortsMax = 64;

// For flows of Services with session affinity; stored separately, so that the others pay nothing for it.
using Pins = std::array<lb::AffinityTable::Pin, limits::kBurstMax>;

// The source of a finished connection whose client tuple is reopened by a SYN. The new flow gets the same
// source again if possible. The endpoint may still have the old connection in TIME-WAIT, which accepts the
// client's own rising sequence numbers (ADR 0009).
struct FormerSource {
    IpAddr address;
    L4Port port = 0;
};

// Starts the search for a source. The egress determines which SNAT addresses are suitable. False: no route to
// the backend.
bool begin_search(WorkerContext& ctx, const FlowKey& forward, Opening& opening) noexcept {
    if (opening.hop == nullptr) {
        return false;
    }
    const nat::BindRequest request{opening.backend->address,
                                   opening.backend->port,
                                   forward.protocol,
                                   opening.hop->egress,
                                   ctx.owner.client_hash(forward.source),
                                   snat_group_of(*ctx.snapshot, *opening.frontend, forward.source)};
    const nat::HostPorts host{ctx.snapshot->services->node_port_bits(forward.protocol),
                              static_cast<uint32_t>(ctx.snapshot->generation)};
    std::construct_at(&opening.search, ctx.snat_ports, *ctx.snapshot->snat, host, request);
    return true;
}

// Selects the next port for a flow to an endpoint on the host that cannot keep the client's port. The reply
// is sent to this port, which identifies this worker as the flow's owner. Deterministic per flow, so that a
// returning client gets the port of its former connection (ADR 0009).
std::optional<DropReason> take_own_port(const WorkerContext& ctx, const FlowKey& forward,
                                        Opening& opening) noexcept {
    if (!ctx.snapshot->routes->is_host_address(opening.backend->address)) {
        return DropReason::NoRoute;
    }
    if (opening.own_ports_tried == kOwnPortsMax) {
        return DropReason::SnatPortsExhausted;
    }
    opening.kept_port =
        ctx.owner.port_of(ctx.self, packet::hash_of(forward, ctx.owner.mix) + opening.own_ports_tried++);
    return std::nullopt;
}

// No route to the chosen endpoint. If it is the host itself (EP-007), the host gets the client's own address,
// because the host accepts no packet from outside with one of its own addresses as the source (ADR 0019).
std::optional<DropReason> keep_for_host(const WorkerContext& ctx, const FlowKey& forward,
                                        Opening& opening) noexcept {
    const route::RouteTable& routes = *ctx.snapshot->routes;
    if (!routes.is_host_address(opening.backend->address) ||
        forward.source.is_v4() != opening.backend->address.is_v4()) {
        return DropReason::NoRoute;  // a client of the other family cannot keep its address
    }
    if (routes.is_host_address(forward.source)) {
        return DropReason::MartianSource;
    }
    opening.keep_source = true;
    // The client's address leads the reply to this worker; otherwise a port of this worker must do so.
    return ctx.owner.of_client(forward.source) == ctx.self ? std::nullopt
                                                           : take_own_port(ctx, forward, opening);
}

PENSTOCK_NOINLINE void open_association(conn::Connection& entry, const Burst& burst, uint32_t i) noexcept {
    const conn::Association opened = conn::opened_by(packet::initiate_tag(burst.data[i], burst.parsed[i]));
    entry.state = static_cast<uint8_t>(opened.state);
    entry.tags = opened.tags;
}

// Inserts the connection into the table, trying one source after the other until the table accepts one.
// Empty: success, found[i] is set.
std::optional<DropReason> bind_and_insert(WorkerContext& ctx, Burst& burst, Opening& opening) noexcept {
    const uint32_t i = opening.packet;
    const FlowKey& forward = burst.parsed[i].key;
    conn::Connection entry{.forward = forward,
                           .last_seen = ctx.now_coarse,
                           .opened_at = ctx.now_coarse,
                           .service = opening.service->id,
                           .backend = opening.backend->id,
                           .state = forward.protocol == Protocol::Tcp
                                        ? static_cast<uint8_t>(conn::kTcpOpeningState)
                                        : static_cast<uint8_t>(conn::DatagramState::OneWay),
                           .is_pinned = opening.service->has_affinity()};
    if (forward.protocol == Protocol::Sctp) [[unlikely]] {
        open_association(entry, burst, i);
    }
    uint64_t reverse_hash = opening.reverse_hash;
    bool has_reclaimed = false;
    for (;;) {
        if (!opening.keep_source && opening.source == nullptr) [[unlikely]] {
            opening.source =
                has_reclaimed ? nullptr : reclaim_source(ctx, burst, i, *opening.backend, opening.search);
            if (opening.source == nullptr) {
                return opening.search.failure();
            }
            has_reclaimed = true;
            reverse_hash = ctx.connections.hash(reverse_key(forward, opening));
        }
        entry.reverse = reverse_key(forward, opening);
        entry.source_kept = opening.keep_source;
        entry.snat_pool = opening.keep_source ? 0 : opening.source->pool.value;
        entry.snat_index = opening.keep_source ? 0 : opening.source->index;
        const packet::TranslationDeltas deltas =
            packet::translation_deltas(forward, {entry.reverse.destination, entry.reverse.source,
                                                 entry.reverse.destination_port, entry.reverse.source_port});
        entry.l4_delta = deltas.l4;
        entry.ip_delta = deltas.ip;
        const bool is_reserved =
            ctx.copies != nullptr && is_reserved_by_copy(*ctx.copies, forward, entry.reverse);
        const conn::Inserted inserted = is_reserved
                                            ? conn::Inserted{conn::InsertStatus::ReverseTaken, {}}
                                            : insert_connection(ctx, entry, burst.hash[i], reverse_hash);
        switch (inserted.status) {
            case conn::InsertStatus::Inserted:
                ctx.by_backend.add(inserted.index, entry.backend);
                if (!opening.keep_source) {
                    opening.search.confirm(ctx.snat_ports);
                }
                burst.found[i] = {inserted.index, conn::Direction::Forward};
                return std::nullopt;
            case conn::InsertStatus::Full:
            case conn::InsertStatus::ForwardTaken:
                return DropReason::ConnectionTableFull;
            case conn::InsertStatus::ReverseTaken:
                break;
        }
        if (!opening.keep_source) {
            opening.source = opening.search.after_refusal(ctx.snat_ports);
        } else if (begin_search(ctx, forward, opening)) {
            // One client socket can reach one backend through two frontends. With the source kept, both flows
            // would have the same reverse tuple and their replies could not be distinguished. The second flow
            // is translated, as the kernel's NAT does in such a case.
            opening.keep_source = false;
            opening.source = opening.search.first(ctx.snat_ports);
        } else if (const std::optional<DropReason> failure = take_own_port(ctx, forward, opening)) {
            return failure;
        }
        if (opening.keep_source || opening.source) {
            reverse_hash = ctx.connections.hash(reverse_key(forward, opening));
        }
    }
}

// The flow to the chosen backend is not opened after all. Inlined, because a call changes the allocation of
// registers on the way of the flows that are opened.
PENSTOCK_ALWAYS_INLINE void drop_chosen(WorkerContext& ctx, Burst& burst, const Opening& opening,
                                        DropReason reason) noexcept {
    ctx.counters.backends[opening.backend->id.value].open.subtract(1);
    drop_counted(ctx, burst, opening.packet, opening.frontend, reason);
}

// Returns the association's own port if it is available (SCTP-003): peers are often configured by port.
// placement.cpp has placed the packet on the worker that owns the port.
PENSTOCK_NOINLINE const nat::Source* associations_source(WorkerContext& ctx, const FlowKey& forward,
                                                         Opening& opening) noexcept {
    return ctx.owner.of_snat_port(forward.source_port) == ctx.self
               ? opening.search.prefer(ctx.snat_ports, forward.source_port)
               : nullptr;
}

// Packet i opens no flow.
PENSTOCK_NOINLINE void serve_unopened(WorkerContext& ctx, Burst& burst, uint32_t i,
                                      const Admission& admission) noexcept {
    switch (admission.kind) {
        case Admission::Kind::Open:
            break;
        case Admission::Kind::Punt:
            burst.arrival[i].note.from_host ? burst.relay(i) : void(burst.verdict[i] = Verdict::Punt);
            break;
        case Admission::Kind::Reject:
            reject(ctx, burst, i, admission.frontend);
            break;
        case Admission::Kind::Drop:
            admission.reason == DropReason::TtlExpired
                ? send_time_exceeded(ctx, burst, i)
                : drop_counted(ctx, burst, i, admission.frontend, admission.reason);
            break;
        case Admission::Kind::PickUp:
            pick_up(ctx, burst, i, admission);
            break;
    }
}

// Decides the verdict of a packet that may not open a flow; otherwise fills `opening` with the chosen backend
// and returns true.
bool choose(WorkerContext& ctx, Burst& burst, uint32_t i, const lb::FrontendRow* frontend, Opening& opening,
            lb::AffinityTable::Pin& pin) noexcept {
    const bool from_host = burst.arrival[i].note.from_host;
    const Admission admission = admit(*ctx.snapshot, frontend, burst.parsed[i], burst.arrival[i].port,
                                      from_host ? Sender::Host : Sender::Outside);
    if (admission.kind != Admission::Kind::Open) {
        serve_unopened(ctx, burst, i, admission);
        return false;
    }
    const FlowKey& forward = burst.parsed[i].key;
    opening.packet = static_cast<uint8_t>(i);
    opening.frontend = frontend;
    opening.service = frontend->service;
    if (opening.service->has_affinity()) [[unlikely]] {
        opening.backend = choose_pinned(ctx, *opening.service, *admission.set, forward, pin);
    } else {
        opening.backend =
            &admission.set->usable[lb::pick(*opening.service, *admission.set, forward, ctx.schedulers)];
    }
    // Counted now, not when the connection exists: the other flows of this burst are scheduled before that,
    // and all of them would find the same backend the least loaded.
    ctx.counters.backends[opening.backend->id.value].open.add(1);
    const bool asks_to_keep = admission.set->source == lb::SourceMode::Keep && !from_host;
    opening.keep_source = !nat::must_translate(asks_to_keep, forward.source, opening.backend->address);
    opening.kept_port = forward.source_port;
    return true;
}

// Serves misses with keys that differ from one another. Each step is done for all of them before the next
// one, so that their memory accesses overlap: frontends, the pools of the chosen endpoints, the buckets of
// both keys.
void open_flows(WorkerContext& ctx, Burst& burst, const PacketList& misses,
                const FormerSource* former) noexcept {
    const lb::ServiceTable& services = *ctx.snapshot->services;
    std::array<uint64_t, limits::kBurstMax> frontend_hash;
    std::array<const lb::FrontendRow*, limits::kBurstMax> known;
    for (uint32_t at = 0; at < misses.count; ++at) {
        known[at] = marked_frontend(*ctx.snapshot, burst, misses.at[at]);
        if (known[at] != nullptr) {
            continue;
        }
        const FlowKey& key = burst.parsed[misses.at[at]].key;
        frontend_hash[at] = services.hash(key.destination, key.destination_port, key.protocol);
        services.prefetch(frontend_hash[at]);
    }
    // Each element is constructed when it is needed: most bursts open only one or two flows.
    union Openings {
        std::array<Opening, limits::kBurstMax> at;
        Openings() noexcept {}
    } storage;
    std::array<Opening, limits::kBurstMax>& openings = storage.at;
    union PinStorage {
        Pins at;
        PinStorage() noexcept {}
    } pin_storage;
    Pins& pins = pin_storage.at;
    uint32_t chosen = 0;
    for (uint32_t at = 0; at < misses.count; ++at) {
        const uint32_t i = misses.at[at];
        const FlowKey& key = burst.parsed[i].key;
        Opening& opening = *std::construct_at(&openings[chosen]);
        const lb::FrontendRow* frontend =
            known[at] != nullptr
                ? known[at]
                : services.find(key.destination, key.destination_port, key.protocol, frontend_hash[at]);
        chosen += choose(ctx, burst, i, frontend, opening, pins[chosen]) ? 1 : 0;
    }
    // A pass of its own, as find_hops() of translate.hpp.
    for (uint32_t at = 0; at < chosen; ++at) {
        openings[at].hop = ctx.snapshot->routes->hop(openings[at].backend->address);
    }
    uint32_t count = 0;
    for (uint32_t at = 0; at < chosen; ++at) {
        if (count != at) [[unlikely]] {  // an earlier one was dropped
            openings[count] = openings[at];
            if (openings[at].service->has_affinity()) {
                pins[count] = pins[at];
            }
        }
        Opening& opening = openings[count];
        const FlowKey& key = burst.parsed[opening.packet].key;
        if (!opening.keep_source && !begin_search(ctx, key, opening)) {
            if (const std::optional<DropReason> failure = keep_for_host(ctx, key, opening)) {
                confirm_or_withdraw(ctx, opening, pins[count], false);
                drop_chosen(ctx, burst, opening, *failure);
                continue;
            }
        }
        ctx.connections.prefetch_buckets(burst.hash[opening.packet]);
        ctx.by_backend.prefetch_head(opening.backend->id);
        ++count;
    }
    for (uint32_t at = 0; at < count; ++at) {
        if (!openings[at].keep_source) {
            openings[at].search.prefetch_pool(ctx.snat_ports);
        }
    }
    ctx.connections.prefetch_units(count);
    for (uint32_t at = 0; at < count; ++at) {
        Opening& opening = openings[at];
        ctx.by_backend.prefetch_newest(opening.backend->id);
        if (!opening.keep_source) {
            const FlowKey& key = burst.parsed[opening.packet].key;
            opening.source = former == nullptr
                                 ? nullptr
                                 : opening.search.prefer(ctx.snat_ports, former->address, former->port);
            if (key.protocol == Protocol::Sctp && !opening.source) [[unlikely]] {
                opening.source = associations_source(ctx, key, opening);
            }
            if (!opening.source) {
                opening.source = opening.search.first(ctx.snat_ports);
            }
        }
        if (opening.keep_source || opening.source) {
            opening.reverse_hash =
                ctx.connections.hash(reverse_key(burst.parsed[opening.packet].key, opening));
            ctx.connections.prefetch_buckets(opening.reverse_hash);
        }
    }
    for (uint32_t at = 0; at < count; ++at) {
        Opening& opening = openings[at];
        const std::optional<DropReason> failure = bind_and_insert(ctx, burst, opening);
        confirm_or_withdraw(ctx, opening, pins[at], !failure);
        if (failure) {
            drop_chosen(ctx, burst, opening, *failure);
            continue;
        }
        count_opened(ctx, burst, opening);
        if (burst.parsed[opening.packet].key.protocol != Protocol::Sctp) [[likely]] {
            if (ctx.snapshot->packets.lowers_mss) [[unlikely]] {
                lower_offered_mss(ctx, burst, opening.packet);
            }
            send_by(ctx, burst, opening.packet, opening.hop);
        } else {
            send_association(ctx, burst, opening.packet);
        }
    }
}

// Splits off the misses that open_flows() can serve together. Those that may share their key with an earlier
// one are served later, one by one. Keys are compared by some bits of their hash: about one packet in thirty
// is served later without need.
struct Partition {
    PacketList together;
    PacketList one_by_one;
};
Partition partition(const Burst& burst) noexcept {
    Partition parts;
    std::array<uint64_t, 16> seen{};
    for (uint32_t at = 0; at < burst.misses.count; ++at) {
        const uint32_t i = burst.misses.at[at];
        const uint64_t bit = uint64_t{1} << (burst.hash[i] & 63);
        uint64_t& word = seen[burst.hash[i] >> 6 & 15];
        ((word & bit) != 0 ? parts.one_by_one : parts.together).add(i);
        word |= bit;
    }
    return parts;
}

// A packet that reopens a connection, or a miss whose key an earlier packet of this burst may have opened. If
// an earlier packet has opened or reopened it, the packet is tracked and counted as if it had arrived later.
void serve_again(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    PacketList alone;
    alone.add(i);
    burst.found[i] = ctx.connections.find(burst.parsed[i].key, burst.hash[i]);
    if (!burst.found[i].is_hit()) {
        return open_flows(ctx, burst, alone, nullptr);
    }
    if (serve_late_hit(ctx, burst, i) != Tracked::Reopens) {
        return;
    }
    const conn::Entry& finished = ctx.connections.at(burst.found[i].index);
    const FlowKey reverse = finished.key(conn::Direction::Reverse);
    const FormerSource former{reverse.destination, reverse.destination_port};
    const bool is_translated = !finished.source_kept;
    close_connection(ctx, burst.found[i].index, Removal::Reopened);
    if (hand_to_opener(ctx, burst, i)) {
        return;
    }
    burst.found[i] = {};
    if (ctx.snapshot->strays != nullptr && forward_if_stray(ctx, burst, i)) {
        return;
    }
    open_flows(ctx, burst, alone, is_translated ? &former : nullptr);
}

}  // namespace

void new_flow(WorkerContext& ctx, Burst& burst) noexcept {
    if ((burst.misses.count | burst.reopening.count) == 0) [[likely]] {
        return;
    }
    if (ctx.copies != nullptr && burst.misses.count > 0) [[unlikely]] {
        take_over_copies(ctx, burst);
    }
    if (ctx.snapshot->strays != nullptr) [[unlikely]] {
        forward_strays(ctx, burst);
    }
    const Partition parts = partition(burst);
    open_flows(ctx, burst, parts.together, nullptr);
    for (uint32_t at = 0; at < parts.one_by_one.count; ++at) {
        serve_again(ctx, burst, parts.one_by_one.at[at]);
    }
    for (uint32_t at = 0; at < burst.reopening.count; ++at) {
        serve_again(ctx, burst, burst.reopening.at[at]);
    }
}

}  // namespace penstock::pipeline
