// SPDX-License-Identifier: Apache-2.0
// For explain: the source that a worker would give to a new flow. Computed from the connection table, which
// any thread may read: the existing tuples alone determine which ports are taken. Of the worker's proposer
// only constant data is read. The ports and the order of the addresses come from the functions that
// nat::SourceSearch uses too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/snat.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/worker/known_connection.hpp"

namespace penstock::worker {

class SnatForecast {
 public:
    // `worker` opens the flow with this `forward` key. `removed`: the connection that the packet would
    // remove, or null. All are borrowed.
    SnatForecast(const config::Snapshot& snapshot, const pipeline::WorkerContext& worker,
                 const packet::FlowKey& forward, const KnownConnection* removed)
        : snapshot_(snapshot),
          worker_(worker),
          forward_(forward),
          removed_(removed != nullptr && removed->worker == worker.self ? removed : nullptr) {}

    // Whether a connection of the worker, apart from the removed one, or the copy of another client's
    // connection has this key, which is that of the replies.
    [[nodiscard]] bool is_in_use(const packet::FlowKey& key) const;

    // The source of the removed connection, if the new flow may have it too: `after` with that source.
    [[nodiscard]] std::optional<packet::FlowKey> former_source(
        packet::FlowKey after, const std::vector<const nat::SnatAddress*>& in_turn) const;

    // Counts of the ports that the worker may use towards an endpoint, over one or more SNAT addresses.
    struct PortUse {
        uint32_t usable = 0, free = 0;
        // taken by a connection that may be evicted for a new one (pipeline/opening/reclaim.hpp)
        uint32_t reclaimable = 0;
    };
    struct PortChoice {
        const nat::SnatAddress* source = nullptr;  // null: there is none
        bool is_free = false;
        PortUse use;
    };
    // In the worker's order: the first address with a free port, otherwise one with a port that may be
    // reclaimed.
    [[nodiscard]] PortChoice choose_port(const lb::Backend& endpoint,
                                         const std::vector<const nat::SnatAddress*>& in_turn) const;

    // The rule by which RSS delivers the replies; null: not predictable.
    [[nodiscard]] const nat::ReplyRule* rule_of_replies(const lb::Backend& endpoint,
                                                        const nat::SnatAddress& source) const;

 private:
    [[nodiscard]] bool is_removed(uint32_t unit) const {
        return removed_ != nullptr && removed_->unit == unit;
    }
    [[nodiscard]] PortUse port_use(const lb::Backend& endpoint, const nat::SnatAddress& source) const;
    [[nodiscard]] nat::PortRules rules_of(const IpAddr& endpoint, L4Port endpoint_port,
                                          const nat::SnatAddress& source) const;
    // In the list of SNAT addresses.
    [[nodiscard]] size_t index_of(const nat::SnatAddress& source) const;

    const config::Snapshot& snapshot_;
    const pipeline::WorkerContext& worker_;
    const packet::FlowKey& forward_;
    const KnownConnection* removed_;
};

}  // namespace penstock::worker
