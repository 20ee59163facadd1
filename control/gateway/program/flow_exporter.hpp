// SPDX-License-Identifier: Apache-2.0
// The exporter of flow records, connected to the workers and to the names of the configuration in force.
#pragma once

#include <chrono>
#include <memory>

#include "control/flow_records/exporter.hpp"
#include "control/gateway/apply/reconciler.hpp"
#include "control/gateway/options/options.hpp"
#include "dataplane/worker/worker_set.hpp"

namespace penstock::gateway {

// Null: flow records are off. The exporter uses both objects until it is stopped. It may be stopped after the
// workers, and then writes their last records.
[[nodiscard]] std::unique_ptr<flow_records::Exporter> start_flow_exporter(
    const Options& options, worker::WorkerSet& workers, const Reconciler& reconciler,
    std::chrono::system_clock::time_point started_on);

}  // namespace penstock::gateway
