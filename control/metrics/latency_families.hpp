// SPDX-License-Identifier: Apache-2.0
// The histograms of latencies as metrics.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "control/metrics/reading.hpp"

namespace penstock::metrics {

// Appends one family for each latency and kind of object that has a reading of it.
void add_latency_families(const Reading& reading, std::vector<prometheus::MetricFamily>& out);

}  // namespace penstock::metrics
