// SPDX-License-Identifier: Apache-2.0
// Service ports that ran out of SNAT ports, from the stamps that workers leave.
#pragma once

#include <functional>
#include <vector>

#include "control/gateway/apply/reconciler.hpp"
#include "control/model/desired.hpp"
#include "dataplane/worker/worker_set.hpp"

namespace penstock::gateway {

// The result, a function to be called by one thread, uses both arguments. It returns the service ports with
// flows that found no SNAT port since its last call. A stamp that differs from the previous one identifies a
// service port.
[[nodiscard]] std::function<std::vector<model::ServiceKey>()> exhausted_services(
    const worker::WorkerSet& workers, const Reconciler& reconciler);

}  // namespace penstock::gateway
