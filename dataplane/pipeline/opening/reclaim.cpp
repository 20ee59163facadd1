// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/reclaim.hpp"
#include "dataplane/pipeline/opening/take_over.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "dataplane/conn/port_rest.hpp"
#include "dataplane/packet/answers/reset.hpp"
#include "dataplane/packet/tcp_options.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::pipeline {
namespace {

using conn::Worth;
using packet::FlowKey;

// Maximum number of ports examined for a new flow. If nine tenths of them are held by lasting connections,
// the probability that none of 64 is available is 1 in 800.
constexpr uint32_t kPortsLookedAt = 64;
// Looked up together, so that their memory accesses overlap. Half of those in TIME-WAIT accept a given SYN,
// so four are usually enough.
constexpr uint32_t kLookedUpTogether = 4;
// Number of evictable connections with unfinished rest (conn::PortRest) after which the best of them is
// taken: those that follow are younger.
constexpr uint32_t kUnrestedMax = 16;

struct Candidate {
    ConnectionIndex index;  // unset: the port turned out to be free
    nat::PortProposer::WalkPosition place;
    uint32_t turn = 0;  // of its address
    Worth worth = Worth::Keep;
    CoarseTime since;
};

// The order in which a full table evicts.
bool is_better(const Candidate& one, const Candidate& other) noexcept {
    return one.worth != other.worth ? one.worth > other.worth : units_between(one.since, other.since) > 0;
}

class Reclaim {
 public:
    Reclaim(WorkerContext& ctx, const FlowKey& forward, const conn::TcpProgress* syn,
            const lb::Backend& endpoint, nat::SourceSearch& search) noexcept
        : ctx_(ctx), forward_(forward), syn_(syn), endpoint_(endpoint), search_(search), rest_(ctx.rate) {}

    [[nodiscard]] const Candidate* find() noexcept {
        const uint32_t each = std::max(kPortsLookedAt / std::max(search_.addresses(), 1U), 1U);
        for (uint32_t turn = 0; turn < search_.addresses() && !is_done_; ++turn) {
            for (uint32_t looked = 0; looked < each && !is_done_;) {
                const uint32_t wanted = std::min(kLookedUpTogether, each - looked);
                if (look_at(turn, wanted) < wanted) {
                    break;  // all ports of the pool were visited
                }
                looked += wanted;
            }
        }
        return best_ ? &*best_ : nullptr;
    }

 private:
    uint32_t look_at(uint32_t turn, uint32_t wanted) noexcept {
        std::array<nat::PortProposer::WalkPosition, kLookedUpTogether> places;
        const uint32_t count = search_.walk(ctx_.snat_ports, turn, std::span(places).first(wanted));
        std::array<FlowKey, kLookedUpTogether> keys;
        std::array<uint64_t, kLookedUpTogether> hashes;
        std::array<conn::Found, kLookedUpTogether> found;
        for (uint32_t at = 0; at < count; ++at) {
            keys[at] = {.source = endpoint_.address,
                        .destination = search_.address(),
                        .source_port = endpoint_.port,
                        .destination_port = places[at].port,
                        .protocol = forward_.protocol};
            hashes[at] = ctx_.connections.hash(keys[at]);
            ctx_.connections.prefetch(hashes[at]);
        }
        ctx_.connections.find_hashed(
            count, endpoint_.address.is_v4() ? 0 : count,
            [&](uint32_t at) -> const FlowKey& { return keys[at]; }, [&](uint32_t at) { return hashes[at]; },
            [&](uint32_t at) -> conn::Found& { return found[at]; });
        for (uint32_t at = 0; at < count && !is_done_; ++at) {
            // A port of a copied connection is not available, whether its connection has been taken over or
            // not.
            if (ctx_.copies == nullptr || !is_reserved_by_copy(*ctx_.copies, forward_, keys[at])) {
                consider(found[at], places[at], turn);
            }
        }
        return count;
    }

    void consider(const conn::Found& found, const nat::PortProposer::WalkPosition& place,
                  uint32_t turn) noexcept {
        if (!found.is_hit()) {  // free: the port was not used by a connection of this pool
            best_ = {{}, place, turn, {}, {}};
            is_done_ = true;
            return;
        }
        const conn::Entry& entry = ctx_.connections.at(found.index);
        const Worth worth = conn::worth_of(entry);
        if (worth == Worth::Keep) {
            return;
        }
        const CoarseTime since = worth == Worth::OneSided ? entry.opened_at : entry.last_seen;
        const Candidate candidate{found.index, place, turn, worth, since};
        if (rest_.is_over(entry, worth, ctx_.now_coarse, syn_)) {
            best_ = candidate;
            is_done_ = true;
        } else {
            if (!best_ || is_better(candidate, *best_)) {
                best_ = candidate;
            }
            is_done_ = ++unrested_ == kUnrestedMax;
        }
    }

    WorkerContext& ctx_;
    const FlowKey& forward_;
    const conn::TcpProgress* syn_;
    const lb::Backend& endpoint_;
    nat::SourceSearch& search_;
    const conn::PortRest rest_;
    std::optional<Candidate> best_;
    uint32_t unrested_ = 0;
    bool is_done_ = false;
};

}  // namespace

const nat::Source* reclaim_source(WorkerContext& ctx, const Burst& burst, uint32_t i,
                                  const lb::Backend& endpoint, nat::SourceSearch& search) noexcept {
    const FlowKey& forward = burst.parsed[i].key;
    const bool is_tcp = forward.protocol == Protocol::Tcp;
    conn::TcpProgress syn;
    if (is_tcp) {
        syn = {load<packet::TcpHeader>(burst.data[i] + burst.parsed[i].l4_offset).seq.host(),
               packet::timestamp_of(burst.data[i], burst.parsed[i])};
    }
    Reclaim reclaim(ctx, forward, is_tcp ? &syn : nullptr, endpoint, search);
    const Candidate* const found = reclaim.find();
    if (found == nullptr) {
        return nullptr;
    }
    if (found->index.is_set()) {
        close_connection(ctx, found->index, Removal::Reclaimed);
        ctx.count()[stats::Counter::ReclaimedSnatPorts].add(1);
    }
    return search.take(ctx.snat_ports, found->turn, found->place);
}

void note_finish(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const ConnectionIndex index = burst.found[i].index;
    ctx.connections.set_tag(index, conn::Direction::Forward,
                            packet::numbers_behind(burst.data[i], burst.parsed[i]).seq);
    ctx.connections.set_tag(index, conn::Direction::Reverse,
                            packet::timestamp_of(burst.data[i], burst.parsed[i]));
}

}  // namespace penstock::pipeline
