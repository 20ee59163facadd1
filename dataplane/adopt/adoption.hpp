// SPDX-License-Identifier: Apache-2.0
// Adopts the connections of a former process into new, empty tables (docs/adr/0038). Nothing of the former
// memory is trusted. A connection is adopted if this process could have opened it under the current snapshot:
//
//   unit of a former table
//      | conn::FormerTable          fields in range
//      | owner                      the worker that the replies reach: computed from the keys alone
//      | frontend --> Service       of the same name as the former number
//      | endpoint --> backend       of that Service, at the address from which the replies come
//      | SNAT address and port      of the configuration, and of that worker
//      | idle time                  below the limit
//      v
//   (flows of a Service that has lost their frontend or endpoint wait until finish(), and are adopted if
//   FormerTables::keep_leaving has a backend for them)
//      v
//   insertion: tuples free, room in the table; then all that belongs to an open connection is derived anew:
//   checksum differences, SNAT port, list of its backend, counts
//
// Every worker reads all former units and takes its own. Each of them does so on a thread of its own; the
// order within a worker is that of the units, so the result is the same in every run.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "dataplane/adopt/current.hpp"
#include "dataplane/adopt/former.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/conn/former_table.hpp"
#include "dataplane/pipeline/opening/foreign.hpp"
#include "dataplane/pipeline/placement.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/pipeline/state/moved_flows.hpp"

namespace penstock::adopt {

class Adoption {
 public:
    // Borrows everything until finish(). `workers`: new, by WorkerId; their ports are set. `now`: of the TSC.
    Adoption(const FormerTables& former, const config::Snapshot& snapshot,
             std::span<pipeline::WorkerContext* const> workers, TscTime now);

    // Call once for each worker, in any order, each on any thread.
    void adopt(WorkerId worker);
    // Call after all of them. Adopts the flows that FormerTables::keep_leaving keeps. Fills `moved` and, if
    // it is not empty then, makes the workers use it.
    [[nodiscard]] Report finish(pipeline::MovedFlows& moved);

 private:
    // Packets that arrive on one of several ports with the same rules.
    struct Way {
        pipeline::PortPromises promises;
        NicPortId port;
        const nat::ReplyRule* rule = nullptr;
    };
    // Where a connection was.
    struct Origin {
        uint32_t table;
        uint32_t unit;
    };
    // A connection on its way into a table.
    struct Candidate {
        pipeline::ForeignConnection foreign;
        uint64_t frontend_hash;
        Origin origin;
    };
    struct Result {
        std::vector<Origin> leaving;
        uint64_t adopted = 0;
        std::array<uint64_t, kNotAdopted> lost{};
        uint64_t moved = 0;
        std::vector<pipeline::MovedFlows::Word> words;
    };
    class Batch;

    // Reads a unit; the connection is one that a gateway may have opened at some time.
    [[nodiscard]] conn::FormerTable::Unit read(Origin origin, conn::Connection& connection) const noexcept;
    [[nodiscard]] LeavingFlows leaving_flows(const conn::Connection& connection) const noexcept;
    void adopt_leaving();
    void count(WorkerId worker) const noexcept;
    // Whether every packet with this key visits the owner by placement alone.
    [[nodiscard]] bool is_led_to(WorkerId owner, const packet::FlowKey& key) const noexcept;
    void note_moved(WorkerId owner, const conn::Connection& connection, Result& result) const;

    const FormerTables& former_;
    const config::Snapshot& snapshot_;
    std::span<pipeline::WorkerContext* const> workers_;
    CoarseTime now_;
    CurrentServices services_;
    std::vector<conn::FormerTable> tables_;
    std::vector<Way> ways_;
    // The backends of flows without an endpoint or a frontend. Empty until finish().
    std::map<LeavingFlows, BackendId> kept_leaving_;
    pipeline::MovedFlows moved_;  // for its keys
    std::vector<Result> results_;
};

}  // namespace penstock::adopt
