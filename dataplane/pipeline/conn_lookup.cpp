#include "dataplane/pipeline/conn_lookup.hpp"

namespace penstock::pipeline {
namespace {

// Hands the packet to the candidate that is to look next, unless that is this worker.
void place_packet(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Arrival& arrival = burst.arrival[i];
    Candidates& candidates = burst.candidates[i];
    candidates =
        place(burst.parsed[i].key, *ctx.snapshot, ctx.owner, arrival.note.receiver, ctx.ports[arrival.port.value].flow_stays_on_queue);
    // The configuration may have changed since the previous worker counted, so the position is brought back into range.
    const uint8_t turn = arrival.note.tried < candidates.count ? arrival.note.tried : static_cast<uint8_t>(candidates.count - 1);
    burst.arrival[i].note.tried = turn;
    if (candidates.workers[turn] != ctx.self) {
        burst.verdict[i] = Verdict::Handoff;
        burst.handoff_to[i] = candidates.workers[turn];
    }
}

// A miss on a candidate that is not the last goes on to the next one.
void pass_on(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Candidates& candidates = burst.candidates[i];
    uint8_t& tried = burst.arrival[i].note.tried;
    if (candidates.is_last(tried)) {
        return;
    }
    ++tried;
    if (candidates.workers[tried] != ctx.self) {
        burst.verdict[i] = Verdict::Handoff;
        burst.handoff_to[i] = candidates.workers[tried];
    }
}

}  // namespace

void conn_lookup(WorkerContext& ctx, Burst& burst) noexcept {
    if (ctx.workers > 1) {
        for (uint32_t i = 0; i < burst.count; ++i) {
            if (burst.under_way(i)) {
                place_packet(ctx, burst, i);
            }
        }
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (burst.under_way(i)) {
            burst.hash[i] = ctx.connections.hash(burst.parsed[i].key);
            ctx.connections.prefetch(burst.hash[i]);
        }
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (burst.under_way(i)) {
            ctx.connections.prefetch_entry(burst.hash[i]);
        }
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (burst.under_way(i)) {
            burst.found[i] = ctx.connections.find(burst.parsed[i].key, burst.hash[i]);
            if (burst.found[i].is_hit()) [[likely]] {
                burst.generation[i] = ctx.connections.generation(burst.found[i].index);
            } else if (ctx.workers > 1) {
                pass_on(ctx, burst, i);
            }
        }
    }
}

}  // namespace penstock::pipeline
