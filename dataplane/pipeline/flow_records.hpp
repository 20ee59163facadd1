// SPDX-License-Identifier: Apache-2.0
// Records of the begin and the end of connections, for the stages that open and remove them. Call these
// functions only if ctx.flow_log is set.
#pragma once

#include "dataplane/config/snapshot.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// The connection at `index` has been opened by a packet of `bytes`, for a Service with this setting.
PENSTOCK_NOINLINE void record_begin(WorkerContext& ctx, ConnectionIndex index, lb::FlowRecords requested,
                                    uint32_t bytes) noexcept;

// The connection is about to be erased. No record if it had no begin.
PENSTOCK_NOINLINE void record_end(WorkerContext& ctx, ConnectionIndex index, Removal removal) noexcept;

// The worker has adopted the connections of a former process, which has written their begins. Selects those
// that will have an end. Before the worker runs; `snapshot` is the one that it starts with.
void select_adopted(WorkerContext& ctx, const config::Snapshot& snapshot) noexcept;

// Whether a packet of a known connection passes, as the Service's counters see it. Constructed before the
// packet is tracked.
class Passage {
 public:
    PENSTOCK_ALWAYS_INLINE Passage(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept
        : found_(burst.found[i]),
          packets_(ctx.counters.services[ctx.connections.at(found_.index).service.value]
                       .passed[static_cast<size_t>(found_.direction)]
                       .packets),
          before_(packets_.read()),
          bytes_(burst.parsed[i].l3_length) {}
    // After the packet was tracked, while its connection is in the table. Needs ctx.flow_log.
    PENSTOCK_ALWAYS_INLINE void count(WorkerContext& ctx) const noexcept {
        if (packets_.read() != before_) {
            ctx.flow_log->count(found_.index, found_.direction, bytes_, ctx.now);
        }
    }

 private:
    conn::Found found_;
    const stats::Tally& packets_;
    uint64_t before_;
    uint32_t bytes_;  // before the packet is translated to the other family
};

}  // namespace penstock::pipeline
