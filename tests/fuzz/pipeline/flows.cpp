// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pipeline/flows.hpp"

#include <algorithm>

namespace penstock::fuzz {

using packet::FlowKey;

conn::Found Flows::find(const FlowKey& key, WorkerId worker) const {
    const conn::Table& table = gateway_.worker(worker.value).connections;
    return table.find(key, table.hash(key));
}

bool Flows::is_over(const Life& life) const {
    const conn::Found now = find(life.forward, life.worker);
    return !now.is_hit() || now.index != life.index ||
           gateway_.worker(life.worker.value).connections.at(now.index).generation != life.generation;
}

const char* Flows::wrong_with_passage(const FlowKey& came, const FlowKey& left, WorkerId worker) {
    const conn::Found found = find(came, worker);
    if (!found.is_hit()) {
        return "what is passed on belongs to a connection of the worker that passes it on";
    }
    const conn::Entry& entry = gateway_.worker(worker.value).connections.at(found.index);
    if (left != entry.key(conn::opposite(found.direction)).reversed()) {
        return "a packet leaves as its connection says";
    }
    if (entry.is_mixed() != (came.source.is_v4() != left.source.is_v4())) {
        return "a connection knows whether its keys are of two families";
    }
    const Life life{worker,
                    found.index,
                    entry.generation,
                    entry.backend,
                    entry.key(conn::Direction::Forward),
                    entry.key(conn::Direction::Reverse)};
    for (const Life& other : lives_) {
        const bool is_same =
            other.worker == life.worker && other.index == life.index && other.generation == life.generation;
        if (is_same) {
            return other.backend == life.backend && other.forward == life.forward &&
                           other.reverse == life.reverse
                       ? nullptr
                       : "a connection keeps its backend, its addresses and its ports";
        }
        if ((other.forward == life.forward || other.reverse == life.reverse ||
             other.forward == life.reverse) &&
            !is_over(other)) {
            return "no two connections share a flow";
        }
    }
    lives_.push_back(life);
    return nullptr;
}

const char* Flows::wrong_with_quote(const FlowKey& left, const FlowKey& came, WorkerId worker) const {
    const conn::Found found = find(left.reversed(), worker);
    if (!found.is_hit()) {
        return "an ICMP error is passed on about a flow of the worker that passes it on";
    }
    const conn::Entry& entry = gateway_.worker(worker.value).connections.at(found.index);
    return came == entry.key(conn::opposite(found.direction))
               ? nullptr
               : "an ICMP error quotes the packet as its sender sent it";
}

bool Flows::has(const FlowKey& key) const {
    for (uint8_t w = 0; w < workers_; ++w) {
        if (gateway_.has_worked(w) && find(key, {w}).is_hit()) {
            return true;
        }
    }
    return false;
}

}  // namespace penstock::fuzz
