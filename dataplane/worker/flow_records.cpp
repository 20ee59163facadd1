// SPDX-License-Identifier: Apache-2.0
// The reader's end of the workers' flow records.
#include <rte_cycles.h>

#include <chrono>

#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {

size_t WorkerSet::take_flow_records(std::span<pipeline::TimedFlowRecord> out) {
    if (!impl_->options.flow_records) {
        return 0;
    }
    const auto workers = static_cast<uint32_t>(impl_->memory.size());
    const TscRate rate{rte_get_tsc_hz()};
    size_t taken = 0;
    for (uint32_t turn = 0; turn < workers && taken < out.size(); ++turn) {
        const uint32_t w = impl_->next_flow_records;
        const TscTime now = impl_->workers_[w]->context().timeline.shown(rte_get_tsc_cycles());
        const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count();
        const auto wall_ms = [&](TscTime time) {
            return now_ms - static_cast<int64_t>(rate.to_milliseconds(ticks_between(time, now)));
        };
        while (taken < out.size()) {
            const auto record = impl_->memory[w]->flow_queue->pop();
            if (!record) {
                break;
            }
            out[taken++] = {*record, wall_ms(record->at), wall_ms(record->started), wall_ms(record->last)};
        }
        // A worker with a full queue does not keep the others waiting.
        impl_->next_flow_records = (w + 1) % workers;
    }
    return taken;
}

WorkerSet::FlowRecordCounts WorkerSet::flow_record_counts() const {
    FlowRecordCounts counts;
    for (const auto& memory : impl_->memory) {
        if (memory->flow_log) {
            counts.written += memory->flow_log->written.read();
            counts.lost += memory->flow_log->lost.read();
        }
    }
    return counts;
}

}  // namespace penstock::worker
