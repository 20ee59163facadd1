// The running gateway's numbers for the metrics, at this moment.
#pragma once

#include "control/gateway/program/running.hpp"
#include "control/metrics/reading.hpp"

namespace penstock::gateway {

[[nodiscard]] metrics::Reading read_metrics(const Running& running);

}  // namespace penstock::gateway
