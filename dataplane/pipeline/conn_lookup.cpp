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
        PacketList own;
        for (uint32_t at = 0; at < burst.flows.count; ++at) {
            place_packet(ctx, burst, burst.flows.at[at]);
            if (burst.under_way(burst.flows.at[at])) {
                own.add(burst.flows.at[at]);
            }
        }
        burst.flows = own;
    }
    const PacketList& flows = burst.flows;
    // Not in classify, beside the parsing: there the headers' own cache misses would queue behind these, which made a packet 15 % dearer at
    // 10M connections (docs/performance.md).
    for (uint32_t at = 0; at < flows.count; ++at) {
        const packet::Parsed& parsed = burst.parsed[flows.at[at]];
        const uint64_t hash = ctx.connections.hash(parsed.key, parsed.family);
        ctx.connections.prefetch(hash);
        burst.hash[flows.at[at]] = hash;
    }
    ctx.connections.find_hashed(
        flows.count, burst.has_v6,
        [&](uint32_t at) PENSTOCK_INLINE_LAMBDA -> const packet::FlowKey& { return burst.parsed[flows.at[at]].key; },
        [&](uint32_t at) PENSTOCK_INLINE_LAMBDA { return burst.hash[flows.at[at]]; },
        [&](uint32_t at) PENSTOCK_INLINE_LAMBDA -> conn::Found& { return burst.found[flows.at[at]]; });
    burst.hits.count = 0;
    burst.misses.count = 0;
    for (uint32_t at = 0; at < flows.count; ++at) {
        const uint32_t i = flows.at[at];
        if (burst.found[i].is_hit()) [[likely]] {
            burst.hits.add(i);
            continue;
        }
        if (ctx.workers > 1) {
            pass_on(ctx, burst, i);
        }
        if (burst.under_way(i)) {
            burst.misses.add(i);
        }
    }
}

}  // namespace penstock::pipeline
