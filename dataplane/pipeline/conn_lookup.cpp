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
    // Gathered, so that the passes of the look-up go over nothing else.
    PacketList flows;
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (burst.under_way(i)) {
            flows.add(i);
        }
    }
    std::array<uint64_t, limits::kBurstMax> hash;
    std::array<conn::Found, limits::kBurstMax> found;
    ctx.connections.find_burst(
        flows.count, [&](uint32_t at) PENSTOCK_INLINE_LAMBDA -> const packet::FlowKey& { return burst.parsed[flows.at[at]].key; },
        hash.data(), found.data());
    burst.hits.count = 0;
    burst.misses.count = 0;
    for (uint32_t at = 0; at < flows.count; ++at) {
        const uint32_t i = flows.at[at];
        burst.found[i] = found[at];
        if (found[at].is_hit()) [[likely]] {
            burst.hits.add(i);
            continue;
        }
        burst.hash[i] = hash[at];
        if (ctx.workers > 1) {
            pass_on(ctx, burst, i);
        }
        if (burst.under_way(i)) {
            burst.misses.add(i);
        }
    }
}

}  // namespace penstock::pipeline
