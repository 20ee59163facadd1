// SPDX-License-Identifier: Apache-2.0
// Metrics of the workers' BFD sessions.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "control/metrics/reading.hpp"

namespace penstock::metrics {

void add_bfd_families(const BfdReading& bfd, std::vector<prometheus::MetricFamily>& out);

}  // namespace penstock::metrics
