// SPDX-License-Identifier: Apache-2.0
// A connection that was opened elsewhere: by a former process (adopt/adoption.hpp), or by another gateway
// (take_over.hpp). It is inserted into the table of the worker that owns it here. Only its keys, state, times
// and tags come from elsewhere. All that follows from them and from the configuration is derived anew.
//
//   ForeignConnection foreign{.connection = ...};          with the current Service and backend
//   if (!examine_foreign(ctx, snapshot, now, foreign)) {   prefetches for the insertion
//       insert_foreign(ctx, foreign, WhenFull::Refuse, pool);
//   }
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/nat/port_proposer.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

struct ForeignConnection {
    conn::Connection connection;
    // Set by examine_foreign().
    uint64_t forward_hash;
    uint64_t reverse_hash;
    uint64_t pool_hash;  // if the source is translated
};

enum class ForeignRefusal : uint8_t {
    Expired,     // idle past its limit
    NoSnatPort,  // its SNAT address or port is none that this worker may have
    Duplicate,   // another connection has one of its keys
    TableFull,
};

enum class WhenFull : uint8_t {
    Refuse,
    Evict,  // as for a new flow (insert_connection())
};

// The worker that the replies reach, from the keys alone. Unset: the SNAT address is not of the
// configuration.
[[nodiscard]] WorkerId owner_of_foreign(const conn::Connection& connection, const config::Snapshot& snapshot,
                                        const nat::ReplyOwner& owner) noexcept;

// Empty: the connection may be inserted, and is complete except for the pool of its port. Its Service and
// backend are those of `snapshot`, its owner is the worker of `ctx`, which need not run yet. A port that
// another gateway would open flows with is allowed. Reads only constant data of `ctx`: any thread.
[[nodiscard]] std::optional<ForeignRefusal> examine_foreign(const WorkerContext& ctx,
                                                            const config::Snapshot& snapshot, CoarseTime now,
                                                            ForeignConnection& foreign) noexcept;

// Starts loading the pool of an examined connection. A later call of insert_foreign() takes the result.
[[nodiscard]] nat::PoolNumber prefetch_pool(const WorkerContext& ctx,
                                            const ForeignConnection& foreign) noexcept;

// Inserts an examined connection, binds its SNAT port and counts it, as opening/new_flow.cpp does for a new
// flow. Empty: success, and `inserted` is set. Evicts only if `when_full` allows it.
[[nodiscard]] std::optional<ForeignRefusal> insert_foreign(WorkerContext& ctx, ForeignConnection& foreign,
                                                           WhenFull when_full, nat::PoolNumber probably,
                                                           ConnectionIndex& inserted) noexcept;

}  // namespace penstock::pipeline
