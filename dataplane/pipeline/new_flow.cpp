#include "dataplane/pipeline/new_flow.hpp"

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/nat/masquerade.hpp"
#include "dataplane/nat/snat.hpp"
#include "dataplane/packet/reject.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/pipeline/admit.hpp"
#include "dataplane/pipeline/track.hpp"
#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {
namespace {

using packet::FlowKey;
using stats::Counter;

// When the table is full, this many units are looked at for a half-open one to give up; a SYN flood makes nearly all of them such.
constexpr uint32_t kVictimSearchUnits = 64;

void drop_counted(WorkerContext& ctx, Burst& burst, uint32_t i, const lb::FrontendRow* frontend, DropReason reason) noexcept {
    burst.drop(i, reason);
    if (frontend != nullptr) {
        ctx.counters.services[frontend->service->id.value].dropped.add(1);
    }
}

// Turns the packet into its own answer, addressed to the client.
void reject(WorkerContext& ctx, Burst& burst, uint32_t i, const lb::FrontendRow& frontend) noexcept {
    // The limit first: it costs nothing, and checking a flood's checksums would.
    if (!ctx.rejects.take(ctx.now)) {
        return drop_counted(ctx, burst, i, &frontend, DropReason::RejectLimited);
    }
    const IpAddr client = burst.parsed[i].key.source;
    const auto answer = packet::make_reject(std::span(burst.data[i], burst.capacity[i]), burst.length[i], burst.parsed[i]);
    if (!answer) {
        return drop_counted(ctx, burst, i, &frontend, answer.error());
    }
    burst.length[i] = *answer;
    burst.leaves_to[i] = client;
    burst.answers[i] = true;
    ctx.counters.services[frontend.service->id.value].rejected.add(1);
    ctx.count()[Counter::Rejected].add(1);
}

// The reverse key of a flow to `backend`, with a SNAT port bound where the source is translated.
std::expected<FlowKey, DropReason> bind_source(WorkerContext& ctx, const FlowKey& forward, const lb::Backend& backend,
                                               bool translate) noexcept {
    FlowKey reverse;
    reverse.source = backend.address;
    reverse.source_port = backend.port;
    reverse.protocol = forward.protocol;
    if (!translate) {
        reverse.destination = forward.source;
        reverse.destination_port = forward.source_port;
        return reverse;
    }
    const std::optional<route::NextHop> next_hop = ctx.snapshot->routes->next_hop(backend.address);
    if (!next_hop) {
        return std::unexpected(DropReason::NoRoute);
    }
    const nat::BindRequest request{backend.address, backend.port, forward.protocol, next_hop->egress,
                                   packet::hash_of(forward.source, ctx.owner.secret)};
    const nat::HostPorts host{ctx.snapshot->services->node_port_bits(forward.protocol), static_cast<uint32_t>(ctx.snapshot->generation)};
    const auto binding = nat::bind(ctx.snat_ports, *ctx.snapshot->snat, host, request);
    if (!binding) {
        return std::unexpected(binding.error());
    }
    reverse.destination = binding->address;
    reverse.destination_port = binding->port;
    return reverse;
}

// Inserts a complete entry; a full table gives up a half-open connection for it.
conn::Inserted insert(WorkerContext& ctx, const conn::Connection& entry, uint64_t forward_hash) noexcept {
    const uint64_t reverse_hash = ctx.connections.hash(entry.reverse);
    conn::Inserted inserted = ctx.connections.insert(entry, forward_hash, reverse_hash);
    if (inserted.status == conn::InsertStatus::Full) [[unlikely]] {
        const conn::Victims victims = ctx.aging.find_victims(ctx.connections, entry.forward.source.family(), kVictimSearchUnits);
        for (uint32_t i = 0; i < victims.count; ++i) {
            close_connection(ctx, victims.index[i]);
            ctx.count()[Counter::EvictedConnections].add(1);
        }
        if (victims.count > 0) {
            inserted = ctx.connections.insert(entry, forward_hash, reverse_hash);
        }
    }
    return inserted;
}

void open_flow(WorkerContext& ctx, Burst& burst, uint32_t i, const Admission& admission) noexcept {
    const lb::Service& service = *admission.frontend->service;
    const lb::BackendSet& set = *admission.set;
    const FlowKey& forward = burst.parsed[i].key;
    const lb::Backend& backend = set.usable[lb::pick(service, set, forward, ctx.schedulers)];

    conn::Connection entry;
    entry.forward = forward;
    entry.service = service.id;
    entry.backend = backend.id;
    entry.opened_at = ctx.now_coarse;
    entry.last_seen = ctx.now_coarse;
    entry.state = forward.protocol == Protocol::Tcp ? static_cast<uint8_t>(conn::kTcpOpeningState)
                                                    : static_cast<uint8_t>(conn::DatagramState::OneWay);

    bool translate = nat::must_translate(set.source == lb::SourceMode::Keep, forward.source, backend.address);
    conn::Inserted inserted;
    for (;;) {
        const auto reverse = bind_source(ctx, forward, backend, translate);
        if (!reverse) {
            return drop_counted(ctx, burst, i, admission.frontend, reverse.error());
        }
        entry.reverse = *reverse;
        entry.source_kept = !translate;
        const packet::TranslationDeltas deltas =
            packet::translation_deltas(forward, {reverse->destination, reverse->source, reverse->destination_port, reverse->source_port});
        entry.l4_delta = deltas.l4;
        entry.ip_delta = deltas.ip;
        inserted = insert(ctx, entry, burst.hash[i]);
        if (inserted.status == conn::InsertStatus::Inserted) {
            break;
        }
        if (translate) {
            nat::release(ctx.snat_ports, entry.reverse);
        }
        // One client socket can reach one backend through two frontends. With the source kept, both flows would have the same reverse
        // tuple and their replies could not be told apart; the second one is translated, as the kernel's NAT resolves such a clash.
        if (inserted.status != conn::InsertStatus::ReverseTaken || translate) {
            return drop_counted(ctx, burst, i, admission.frontend, DropReason::ConnectionTableFull);
        }
        translate = true;
    }
    burst.found[i] = {inserted.index, conn::Direction::Forward};
    translate_one(ctx, burst, i);

    stats::ServiceCounters& counters = ctx.counters.services[service.id.value];
    counters.new_flows.add(1);
    counters.connections.add(1);
    counters.forward_packets.add(1);
    counters.forward_bytes.add(burst.parsed[i].l3_length);
    stats::BackendCounters& backend_counters = ctx.counters.backends[backend.id.value];
    backend_counters.new_flows.add(1);
    backend_counters.connections.add(1);
    ctx.count()[Counter::NewConnections].add(1);
    ctx.count()[Counter::Connections].set(ctx.connections.size());
}

PENSTOCK_NOINLINE void serve_miss(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const FlowKey& key = burst.parsed[i].key;
    const lb::FrontendRow* frontend = ctx.snapshot->services->find(key.destination, key.destination_port, key.protocol);
    const Admission admission = admit(*ctx.snapshot, frontend, burst.parsed[i]);
    switch (admission.kind) {
        case Admission::Kind::Open:
            return open_flow(ctx, burst, i, admission);
        case Admission::Kind::Punt:
            burst.verdict[i] = Verdict::Punt;
            return;
        case Admission::Kind::Reject:
            return reject(ctx, burst, i, *admission.frontend);
        case Admission::Kind::Drop:
            return drop_counted(ctx, burst, i, admission.frontend, admission.reason);
    }
}

}  // namespace

void new_flow(WorkerContext& ctx, Burst& burst) noexcept {
    const uint64_t before = ctx.count()[Counter::NewConnections].read();
    for (uint32_t at = 0; at < burst.misses.count; ++at) {
        const uint32_t i = burst.misses.at[at];
        // The flow may have been opened by a packet earlier in this burst; then this one is checked and counted as one that arrived later.
        if (ctx.count()[Counter::NewConnections].read() != before) {
            burst.found[i] = ctx.connections.find(burst.parsed[i].key, burst.hash[i]);
            if (burst.found[i].is_hit() && track_packet(ctx, burst, i)) {
                if (burst.under_way(i)) {
                    translate_one(ctx, burst, i);
                }
                continue;
            }
        }
        serve_miss(ctx, burst, i);
    }
}

}  // namespace penstock::pipeline
