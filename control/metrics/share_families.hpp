// SPDX-License-Identifier: Apache-2.0
// Metrics of the plan of shares.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "control/metrics/reading.hpp"

namespace penstock::metrics {

void add_share_families(const ShareReading& shares, std::vector<prometheus::MetricFamily>& out);

}  // namespace penstock::metrics
