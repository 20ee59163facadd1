// SPDX-License-Identifier: Apache-2.0
// The memory of the workers' histograms of latencies, and the reader's end of them.
#include "dataplane/worker/latencies.hpp"

#include <rte_cycles.h>

#include "dataplane/worker/table_memory.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {
namespace {

void add_histogram(const stats::LatencyHistogram& row, LatencyTotals& totals) {
    for (size_t i = 0; i < stats::kLatencyBuckets; ++i) {
        totals.buckets[i] += row.buckets[i].read();
    }
    totals.sum_s += static_cast<double>(row.ticks.read()) / static_cast<double>(rte_get_tsc_hz());
}

using LatencyRows = std::span<stats::LatencyCounters> pipeline::LatencyMeter::*;
template <typename Id>
std::optional<ConnectionLatencies> latencies_of(const WorkerSet::Impl& impl, LatencyRows rows, Id id) {
    ConnectionLatencies totals;
    for (const auto& worker : impl.workers_) {
        const pipeline::LatencyMeter* const meter = worker->context().latency;
        if (meter == nullptr || (meter->*rows).empty()) {
            return std::nullopt;
        }
        const stats::LatencyCounters& row = (meter->*rows)[id.value];
        add_histogram(row.connect, totals.connect);
        add_histogram(row.first_byte, totals.first_byte);
    }
    return totals;
}

}  // namespace

Status WorkerSet::Impl::take_latency_meter(uint32_t worker, WorkerMemory& kept) const {
    PENSTOCK_TRY(const auto waits, take_huge("latencies " + std::to_string(worker),
                                             options.connections_per_worker * sizeof(pipeline::LatencyWait),
                                             options.lcores[worker]));
    kept.latency_waits.reset(waits.data());
    const auto rows_of = [](std::unique_ptr<ZeroPages>& pages, size_t rows) {
        pages = std::make_unique<ZeroPages>(rows * sizeof(stats::LatencyCounters));
        return pages->as<stats::LatencyCounters>();
    };
    // Zeroed memory is valid: no connection waits, an adopted one included.
    kept.latency = std::make_unique<pipeline::LatencyMeter>(pipeline::LatencyMeter{
        .waits = {reinterpret_cast<pipeline::LatencyWait*>(waits.data()), options.connections_per_worker},
        .bounds = stats::latency_bounds(TscRate{rte_get_tsc_hz()}),
        .services = rows_of(kept.service_latencies, limits::kServicesMax),
        .backends = {}});
    if (options.latencies == Latencies::ServicesAndBackends) {
        kept.latency->backends = rows_of(kept.backend_latencies, limits::kBackendsMax);
    }
    return {};
}

std::optional<ConnectionLatencies> Inspector::latencies(ServiceId id) const {
    return latencies_of(*workers_->impl_, &pipeline::LatencyMeter::services, id);
}

std::optional<ConnectionLatencies> Inspector::latencies(BackendId id) const {
    return latencies_of(*workers_->impl_, &pipeline::LatencyMeter::backends, id);
}

}  // namespace penstock::worker
