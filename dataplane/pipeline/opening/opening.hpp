// SPDX-License-Identifier: Apache-2.0
// A connection that is being opened, with the steps that opening (new_flow.cpp) and picking up (pick_up.cpp)
// share: choice of the backend, insertion into the table, counts.
#pragma once

#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/conn/aging.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/lb/affinity.hpp"
#include "dataplane/nat/source_search.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/pipeline/flow_records.hpp"
#include "dataplane/pipeline/opening/fair_share.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Units of a full table that are examined for a connection to evict (conn/aging.hpp); under a SYN flood
// nearly all are half-open.
inline constexpr uint32_t kVictimSearchUnits = 64;

// A flow that is being opened, between the passes of open_flows() (new_flow.cpp).
struct Opening {
    const lb::Service* service;
    const lb::FrontendRow* frontend;
    const lb::Backend* backend;
    const route::Hop* hop;                // of the backend; null: it has none
    nat::SourceSearch search;             // if the source is translated
    const nat::Source* source = nullptr;  // the first proposal; the search owns it
    uint64_t reverse_hash;                // of the first proposal
    uint8_t packet;
    bool keep_source;
    uint8_t own_ports_tried = 0;
    // if the source is kept: the client's port, except for some endpoints on the host (take_own_port)
    L4Port kept_port;
};

// The key of the replies.
PENSTOCK_ALWAYS_INLINE packet::FlowKey reverse_key(const packet::FlowKey& forward,
                                                   const Opening& opening) noexcept {
    return {.source = opening.backend->address,
            .destination = opening.keep_source ? forward.source : opening.source->address,
            .source_port = opening.backend->port,
            .destination_port = opening.keep_source ? opening.kept_port : opening.source->port,
            .protocol = forward.protocol};
}

// Inserts a complete entry. If the table is full, a half-open, finished or brief connection is evicted for
// it, or one of a holder with too many connections.
PENSTOCK_ALWAYS_INLINE conn::Inserted insert_connection(WorkerContext& ctx, const conn::Connection& entry,
                                                        uint64_t forward_hash,
                                                        uint64_t reverse_hash) noexcept {
    conn::Inserted inserted = ctx.connections.insert(entry, forward_hash, reverse_hash);
    if (inserted.status == conn::InsertStatus::Full) [[unlikely]] {
        const bool is_v4 = entry.forward.source.is_v4() && entry.reverse.source.is_v4();
        const FairShare share(ctx, entry.service, entry.forward.source);
        const conn::Victims victims = ctx.aging.find_victims(
            ctx.connections, is_v4 ? IpFamily::V4 : IpFamily::V6, kVictimSearchUnits, share.appraiser());
        for (uint32_t i = 0; i < victims.count; ++i) {
            close_connection(ctx, victims.index[i], Removal::Evicted);
            ctx.count()[stats::Counter::EvictedConnections].add(1);
        }
        if (victims.count > 0) {
            inserted = ctx.connections.insert(entry, forward_hash, reverse_hash);
        }
    }
    return inserted;
}

// Counts and records the open connection and its first packet.
PENSTOCK_ALWAYS_INLINE void count_opened(WorkerContext& ctx, const Burst& burst,
                                         const Opening& opening) noexcept {
    stats::ServiceCounters& counters = ctx.counters.services[opening.service->id.value];
    counters.new_flows.add(1);
    counters.connections.add(1);
    ctx.prefixes.add(PrefixCounts::slot_of(burst.parsed[opening.packet].key.source, ctx.owner.mix));
    counters.passed[0].packets.add(1);
    counters.passed[0].bytes.add(burst.parsed[opening.packet].l3_length);
    stats::BackendCounters& backend_counters = ctx.counters.backends[opening.backend->id.value];
    backend_counters.new_flows.add(1);
    backend_counters.connections.add(1);
    ctx.count()[stats::Counter::NewConnections].add(1);
    ctx.count()[stats::Counter::Connections].set(ctx.connections.size());
    if (ctx.flow_log != nullptr) [[unlikely]] {
        record_begin(ctx, burst.found[opening.packet].index, opening.service->flow_records,
                     burst.parsed[opening.packet].l3_length);
    }
}

// Returns the client's former backend (affinity precedes the scheduler: AFF-006), otherwise a new choice that
// is the same on all workers.
PENSTOCK_NOINLINE const lb::Backend* choose_pinned(WorkerContext& ctx, const lb::Service& service,
                                                   const lb::BackendSet& set, const packet::FlowKey& forward,
                                                   lb::AffinityTable::Pin& pin) noexcept;

// Confirms or withdraws the affinity entry, depending on whether the flow was opened.
PENSTOCK_ALWAYS_INLINE void confirm_or_withdraw(WorkerContext& ctx, const Opening& opening,
                                                const lb::AffinityTable::Pin& pin, bool is_open) noexcept {
    if (opening.service->has_affinity()) [[unlikely]] {
        is_open ? lb::AffinityTable::open(pin, ctx.now_coarse) : lb::AffinityTable::withdraw(pin);
    }
}

}  // namespace penstock::pipeline
