// SPDX-License-Identifier: Apache-2.0
// Readings of the workers that decide the steps of a drain (DrainOrder), and that status shows of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "control/gateway/apply/reconciler.hpp"
#include "dataplane/worker/worker_set.hpp"

namespace penstock::gateway {

// Packets received for all service ports that have a VIP, since start: cost O(service ports). A deleted
// service port reduces the number.
[[nodiscard]] std::function<uint64_t(const Compiled& compiled)> vip_packets(const worker::WorkerSet& workers);

// Flows that have not ended, by service port, also of deleted ones. Only service ports with such flows.
[[nodiscard]] std::map<model::ServiceKey, uint64_t> open_flows_by_service(const worker::WorkerSet& workers,
                                                                          const Reconciler& reconciler);
// Their sum.
[[nodiscard]] uint64_t open_flows(const worker::WorkerSet& workers, const Reconciler& reconciler);

}  // namespace penstock::gateway
