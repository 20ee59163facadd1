// SPDX-License-Identifier: Apache-2.0
// The memory of the workers' flow records, and the reader's end of them.
#include <rte_cycles.h>

#include <chrono>

#include "dataplane/worker/table_memory.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {

Status WorkerSet::Impl::take_flow_log(uint32_t worker, WorkerMemory& kept) const {
    PENSTOCK_TRY(const auto flows, take_huge("flow records " + std::to_string(worker),
                                             options.connections_per_worker * sizeof(pipeline::FlowLog::Flow),
                                             options.lcores[worker]));
    kept.flows.reset(flows.data());
    kept.flow_queue = std::make_unique<pipeline::FlowRecordQueue>();
    // Zeroed memory is valid: no connection has records.
    kept.flow_log.reset(new pipeline::FlowLog{
        .flows = {reinterpret_cast<pipeline::FlowLog::Flow*>(flows.data()), options.connections_per_worker},
        .queue = kept.flow_queue.get(),
        .selection = *options.flow_records,
        .since = {rte_get_tsc_cycles()}});
    return {};
}

size_t WorkerSet::take_flow_records(std::span<pipeline::TimedFlowRecord> out) {
    if (!impl_->options.flow_records) {
        return 0;
    }
    const auto workers = static_cast<uint32_t>(impl_->memory.size());
    size_t taken = 0;
    for (uint32_t turn = 0; turn < workers && taken < out.size(); ++turn) {
        const uint32_t w = impl_->next_flow_records;
        const TscMeasure::Reading reading = read_clocks();
        const TscTime now = impl_->workers_[w]->context().timeline.shown(reading.ticks);
        const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count();
        const auto wall_ms = [&](TscTime time) {
            return now_ms - impl_->tsc.milliseconds(ticks_between(time, now), reading);
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
