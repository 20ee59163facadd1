// SPDX-License-Identifier: Apache-2.0
// Takes over copies of another gateway's connections (copies/store.hpp): a packet that has missed in the
// table of every worker that placement names, and whose key a copy has, makes the connection one of this
// gateway's. Its owner, computed from the keys alone (opening/foreign.hpp), inserts it as an adoption does
// and serves the packet as a hit. Another worker hands the packet to the owner (conn_lookup.cpp). The mark of
// the copy that was taken leads the packets of both directions to the owner as long as the copy is held.
//
// A SYN or an INIT begins another connection of the same tuple and never takes a copy over; nor does a
// segment with invalid flags. A SYN+ACK does: the endpoint answers a SYN that the other gateway has
// forwarded. A copy is refused if its frontend or endpoint is gone from the configuration, if its SNAT
// address or port is none that this worker may have, if it has been idle past its limit, if another
// connection has one of its keys, or if the table is full. Its packets are then served like those of an
// unknown connection. The copy is examined again under another configuration, after a record of it, and after
// the next sweep of the store (CopyBook).
#pragma once

#include "dataplane/copies/store.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/pipeline/opening/foreign.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Whether a packet may continue a connection that is only known by its copy.
[[nodiscard]] bool may_take_over(const packet::Parsed& packet) noexcept;

// The worker that has or will take over the connection of this packet; unset: no copy has its key, or the
// packet begins another connection. Pure, for any thread.
[[nodiscard]] WorkerId owner_of_copy(const copies::Store& copies, const packet::Parsed& packet,
                                     const config::Snapshot& snapshot, const nat::ReplyOwner& owner) noexcept;

// Whether the owner of a copy may insert its connection, apart from other connections in its table. Fills
// `foreign` from the copy. Reads only constant data of `ctx`, so any thread may call it.
[[nodiscard]] bool prepare_copy(const WorkerContext& ctx, const config::Snapshot& snapshot, CoarseTime now,
                                const conn::Connection& copy, ForeignConnection& foreign) noexcept;

// The connection with this key, of which this worker's table had none: taken over now, or since the table was
// read. Not a hit: there is no copy, it belongs to another worker, it is refused, or the connection has
// ended. Needs ctx.copies. May evict connections from a full table.
[[nodiscard]] conn::Found take_over(WorkerContext& ctx, const packet::FlowKey& key) noexcept;

// Serves the misses of the burst that belong to copies, and removes them from the misses. Runs after the
// hits, because it may evict a connection of theirs, and before the misses open flows. Needs ctx.copies.
PENSTOCK_NOINLINE void take_over_copies(WorkerContext& ctx, Burst& burst) noexcept;

// Whether the connection cannot be opened, because a copy of another one has its reverse key. A copy of the
// same client tuple does not count: its connection has ended if the client begins another one.
[[nodiscard]] PENSTOCK_NOINLINE bool is_reserved_by_copy(const copies::Store& copies,
                                                         const packet::FlowKey& forward,
                                                         const packet::FlowKey& reverse) noexcept;

}  // namespace penstock::pipeline
