// SPDX-License-Identifier: Apache-2.0
// Current readings of the running gateway for the metrics.
#pragma once

#include <cstddef>

#include "control/gateway/program/running.hpp"
#include "control/metrics/reading.hpp"

namespace penstock::gateway {

// `backends_max`: number of backends with readings of their own; 0: none.
[[nodiscard]] metrics::Reading read_metrics(const Running& running, size_t backends_max);

}  // namespace penstock::gateway
