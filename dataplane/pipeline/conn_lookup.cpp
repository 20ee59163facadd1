// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/conn_lookup.hpp"

#include <utility>

#include "dataplane/packet/common_packet.hpp"
#include "dataplane/pipeline/opening/strays.hpp"
#include "dataplane/pipeline/opening/take_over.hpp"
#include "dataplane/pipeline/placement.hpp"

namespace penstock::pipeline {
namespace {

PENSTOCK_ALWAYS_INLINE void hand_to(Burst& burst, uint32_t i, WorkerId next) noexcept {
    HandoffNote& note = burst.arrival[i].note;
    burst.verdict[i] = Verdict::Handoff;
    burst.handoff_to[i] = next;
    note.is_common = !note.from_host && packet::is_common(burst.parsed[i]);
}

// Hands the packet to the candidate at `turn`, unless that is this worker.
PENSTOCK_ALWAYS_INLINE void hand_on(const WorkerContext& ctx, Burst& burst, uint32_t i,
                                    uint8_t turn) noexcept {
    const WorkerId next = burst.candidates[i].workers[turn];
    if (next != ctx.self) {
        hand_to(burst, i, next);
    }
}

Candidates candidates_of(const WorkerContext& ctx, const Burst& burst, uint32_t i, Ask ask) noexcept {
    const Arrival& arrival = burst.arrival[i];
    return place(burst.parsed[i].key, *ctx.snapshot, ctx.owner,
                 {.receiver = arrival.note.receiver,
                  .port = arrival.port,
                  .promises = ctx.ports[arrival.port.value].promises,
                  .known = marked_frontend(*ctx.snapshot, burst, i)},
                 ask);
}

// NICs find no ports to hash in fragments, and behind IPv4 options and IPv6 extension headers. Any host may
// send such packets.
bool shows_ports_to_nic(const packet::Parsed& parsed) noexcept {
    return !parsed.is_fragment &&
           parsed.l4_offset - parsed.l3_offset == (parsed.family == IpFamily::V4 ? 20 : 40);
}

// A packet that is handed over although the NIC should have delivered it to its owner.
void count_misplaced(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const Arrival& arrival = burst.arrival[i];
    if (burst.candidates[i].is_foretold && !burst.under_way(i) && arrival.note.handoffs == 0 &&
        shows_ports_to_nic(burst.parsed[i])) {
        ctx.count(arrival.port).replies_misplaced.add(1);
    }
}

// Look up locally first on ports that deliver all packets of a 5-tuple to one queue. The worker of that queue
// owns nearly every flow that it receives, and a hit makes computing the owner unnecessary. That computation
// measured 50 % of the rest of the per-packet cost. The owner is computed after a miss. On other ports most
// packets belong to other workers, and the lookup would be wasted. A packet that was handed over has been
// placed by its sender, on this worker. Fragments are always placed: the worker of their datagram may have a
// connection of the same key that whole datagrams do not reach any more.
PENSTOCK_ALWAYS_INLINE bool looks_first(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const Arrival& arrival = burst.arrival[i];
    return !burst.parsed[i].is_fragment &&
           (arrival.note.handoffs > 0 || ctx.ports[arrival.port.value].promises.flow_stays_on_queue);
}

Candidates candidates_from_host(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    return place_from_host(burst.parsed[i].key, *ctx.snapshot, ctx.owner, burst.arrival[i].note.receiver);
}

void place_packet(WorkerContext& ctx, Burst& burst, uint32_t i, Ask ask) noexcept {
    HandoffNote& note = burst.arrival[i].note;
    burst.candidates[i] = candidates_of(ctx, burst, i, ask);
    if (note.tried >= kBackFromMoved) [[unlikely]] {
        return;
    }
    note.tried = burst.candidates[i].in_range(note.tried);
    hand_on(ctx, burst, i, note.tried);
    count_misplaced(ctx, burst, i);
}

// place_packet() for the packets that have a usual_owner(), without a visit before. False: for another
// packet, which has no candidates yet.
PENSTOCK_ALWAYS_INLINE bool place_usual(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Arrival& arrival = burst.arrival[i];
    if (arrival.note.tried != 0 || burst.parsed[i].is_fragment) {
        return false;
    }
    const WorkerId owner = usual_owner(burst.parsed[i].key, *ctx.snapshot, ctx.owner, arrival.note.receiver,
                                       ctx.ports[arrival.port.value].promises);
    if (!owner.is_set()) {
        return false;
    }
    PENSTOCK_ASSERT(candidates_of(ctx, burst, i, Ask::EachWorker).count == 1 &&
                    candidates_of(ctx, burst, i, Ask::EachWorker).workers[0] == owner);
    if (owner != ctx.self) {
        hand_to(burst, i, owner);
    } else {
        burst.candidates[i] = {.workers = {owner}, .count = 1};
    }
    return true;
}

// Hands over the flow packets that are placed before a lookup and belong to another worker.
void place_flows(WorkerContext& ctx, Burst& burst) noexcept {
    PacketList own;
    for (uint32_t at = 0; at < burst.flows.count; ++at) {
        const uint32_t i = burst.flows.at[at];
        if (!looks_first(ctx, burst, i) && !place_usual(ctx, burst, i)) {
            place_packet(ctx, burst, i, Ask::ReceiverFirst);
        }
        if (burst.under_way(i)) {
            own.add(i);
        }
    }
    burst.flows = own;
}

// Packets from the host are added to those from the wire on a worker that may own their flow.
PENSTOCK_NOINLINE void take_host_flows(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.host_flows.count; ++at) {
        const uint32_t i = burst.host_flows.at[at];
        if (ctx.workers > 1) {
            HandoffNote& note = burst.arrival[i].note;
            burst.candidates[i] = candidates_from_host(ctx, burst, i);
            if (note.tried < kBackFromMoved) {
                note.tried = burst.candidates[i].in_range(note.tried);
                hand_on(ctx, burst, i, note.tried);
            }
        }
        if (burst.under_way(i)) {
            burst.flows.add(i);
        }
    }
}

// A miss on the last candidate, or behind it. If another worker has adopted the flow, or has taken over its
// copy or may do so, the packet visits that one. If that has no such connection any more, the packet returns,
// and may open a flow here.
PENSTOCK_NOINLINE void ask_owner(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    uint8_t& tried = burst.arrival[i].note.tried;
    if (tried == kBackFromMoved) {
        return;
    }
    if (tried == kTriesMoved) {
        if (ctx.copies == nullptr) {  // otherwise take_over_copies() decides
            hand_back(ctx, burst, i);
        }
        return;
    }
    WorkerId owner;
    if (ctx.copies != nullptr && !precedes_copies(*ctx.snapshot, burst.parsed[i].key)) {
        owner = owner_of_copy(*ctx.copies, burst.parsed[i], *ctx.snapshot, ctx.owner);
    }
    // A moved flow may have ended long ago. If it lives and has a copy too, both have the same owner.
    if (!owner.is_set() && ctx.moved != nullptr) {
        owner = ctx.moved->owner_of(burst.parsed[i].key);
    }
    if (owner.is_set() && owner != ctx.self) {
        tried = kTriesMoved;
        hand_to(burst, i, owner);
    }
}

// A miss on a candidate that is not the last one is handed to the next candidate.
void pass_on(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    Candidates& candidates = burst.candidates[i];
    if (candidates.is_first_guess) {
        candidates = candidates_of(ctx, burst, i, Ask::EachWorker);
    }
    uint8_t& tried = burst.arrival[i].note.tried;
    if (candidates.is_last(tried)) {
        if (ctx.moved != nullptr || ctx.copies != nullptr) [[unlikely]] {
            ask_owner(ctx, burst, i);
        }
        return;
    }
    ++tried;
    hand_on(ctx, burst, i, tried);
    count_misplaced(ctx, burst, i);
}

// Hands over the misses that another worker may own.
PENSTOCK_NOINLINE void place_misses(WorkerContext& ctx, Burst& burst) noexcept {
    const uint32_t misses = std::exchange(burst.misses.count, 0);
    for (uint32_t at = 0; at < misses; ++at) {
        const uint32_t i = burst.misses.at[at];
        if (burst.candidates[i].count == 0 && !place_usual(ctx, burst, i)) {
            place_packet(ctx, burst, i, Ask::EachWorker);
        }
        if (burst.under_way(i)) {
            pass_on(ctx, burst, i);
        }
        if (burst.under_way(i)) {
            burst.misses.add(i);
        }
    }
}

}  // namespace

bool hand_to_opener(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    if (ctx.workers == 1) {
        return false;
    }
    HandoffNote& note = burst.arrival[i].note;
    burst.candidates[i] =
        note.from_host ? candidates_from_host(ctx, burst, i) : candidates_of(ctx, burst, i, Ask::EachWorker);
    // the worker that may open the flow is the last candidate
    const auto opener = static_cast<uint8_t>(burst.candidates[i].count - 1);
    note.tried = ctx.moved == nullptr && ctx.copies == nullptr ? opener : kBackFromMoved;
    hand_on(ctx, burst, i, opener);
    return !burst.under_way(i);
}

bool hand_back(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    burst.arrival[i].note.tried = kBackFromMoved;
    hand_on(ctx, burst, i, static_cast<uint8_t>(burst.candidates[i].count - 1));
    return !burst.under_way(i);
}

void conn_lookup(WorkerContext& ctx, Burst& burst) noexcept {
    if (ctx.workers > 1 && !burst.looks_first) {
        place_flows(ctx, burst);
    }
    if (burst.host_flows.count > 0) [[unlikely]] {
        take_host_flows(ctx, burst);
    }
    const PacketList& flows = burst.flows;
    // Not in classify, beside the parsing: there the cache misses of the headers would queue behind these,
    // which measured 15 % more per packet at 10M connections (docs/performance.md).
    uint32_t v6 = 0;
    for (uint32_t at = 0; at < flows.count; ++at) {
        const packet::Parsed& parsed = burst.parsed[flows.at[at]];
        uint64_t hash = 0;
        if (parsed.family == IpFamily::V4) {
            hash = ctx.connections.hash(parsed.key, IpFamily::V4);
        } else {
            hash = ctx.connections.hash(parsed.key, IpFamily::V6);
            ++v6;
        }
        ctx.connections.prefetch(hash);
        burst.hash[flows.at[at]] = hash;
    }
    ctx.connections.find_hashed(
        flows.count, v6,
        [&](uint32_t at)
            PENSTOCK_INLINE_LAMBDA -> const packet::FlowKey& { return burst.parsed[flows.at[at]].key; },
        [&](uint32_t at) PENSTOCK_INLINE_LAMBDA { return burst.hash[flows.at[at]]; },
        [&](uint32_t at) PENSTOCK_INLINE_LAMBDA -> conn::Found& { return burst.found[flows.at[at]]; });
    burst.hits.count = 0;
    burst.misses.count = 0;
    burst.reopening.count = 0;
    for (uint32_t at = 0; at < flows.count; ++at) {
        const uint32_t i = flows.at[at];
        if (burst.found[i].is_hit()) [[likely]] {
            burst.hits.add(i);
            continue;
        }
        burst.misses.add(i);
    }
    if (ctx.workers > 1 && burst.misses.count > 0) {
        place_misses(ctx, burst);
    }
}

}  // namespace penstock::pipeline
