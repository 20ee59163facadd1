// SPDX-License-Identifier: Apache-2.0
// Current readings of the running gateway for the metrics.
#pragma once

#include "control/gateway/program/running.hpp"
#include "control/metrics/reading.hpp"

namespace penstock::gateway {

[[nodiscard]] metrics::Reading read_metrics(const Running& running);

}  // namespace penstock::gateway
