// SPDX-License-Identifier: Apache-2.0
// For explain: the connection of a packet, and what the packet does to it. The same transitions as
// pipeline/track.hpp, but on a copy, without changing the connection. Any control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/pipeline/placement.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::worker {

// The workers on which the pipeline looks up a packet of this key (pipeline/conn_lookup.cpp), in turn. The
// last one may open a flow, unless it is there as the owner of a moved flow (pipeline::MovedFlows) or of a
// copy (pipeline/opening/take_over.hpp).
[[nodiscard]] std::vector<WorkerId> searched_workers(const packet::Parsed& packet,
                                                     const config::Snapshot& snapshot,
                                                     const pipeline::WorkerContext& receiver,
                                                     const pipeline::Arrived& arrived);

struct KnownConnection {
    WorkerId worker;
    uint32_t unit = 0;  // of the worker's table; kCopied: in no table
    static constexpr uint32_t kCopied = ~0U;
    conn::Direction direction = conn::Direction::Forward;
    conn::Connection connection;
};

// The connection in this worker's table that has `key` in one of its directions.
[[nodiscard]] std::optional<KnownConnection> find_connection(const pipeline::WorkerContext& context,
                                                             const packet::FlowKey& key);

// The copy that has the packet's key, and that the packet takes over (pipeline/opening/take_over.hpp).
struct KnownCopy {
    // Its owner, and the connection that it would have; empty: the copy is refused.
    std::optional<KnownConnection> connection;
};
// Empty: there is no such copy. `now`: of the workers' clock.
using ContextOf = std::function<const pipeline::WorkerContext&(WorkerId worker)>;
[[nodiscard]] std::optional<KnownCopy> find_copy(const packet::Parsed& packet,
                                                 const config::Snapshot& snapshot,
                                                 const ContextOf& context_of, CoarseTime now);

// "; worker 2 has one, ...": connections with `key` on workers that are not `searched`. "": none.
[[nodiscard]] std::string unreached_text(std::span<const WorkerId> searched, const ContextOf& context_of,
                                         const packet::FlowKey& key);

enum class Effect : uint8_t {
    Continues,     // translated and forwarded
    Reopens,       // the connection is finished: it is removed, and the packet is the first of a new flow
    Resets,        // the connection was ended by an order: answered with RSTs to both sides
    IsInvalid,     // drop (InvalidTcpFlags)
    IsStray,       // drop (SctpNoAssociation)
    IsNotAllowed,  // drop (RejectNotAllowed): answers are due, but not to this packet
};
// `packet`: protocol, TCP flags and SCTP event. Of the SCTP events only an INIT.
[[nodiscard]] Effect effect_on(const KnownConnection& known, const packet::Parsed& packet);

}  // namespace penstock::worker
