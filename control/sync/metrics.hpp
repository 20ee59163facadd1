// SPDX-License-Identifier: Apache-2.0
// penstock-sync as Prometheus metrics: penstock_sync_*, and those of addresses from pools
// (address_metrics.hpp). Each metric is listed once in the .cpp files with its name, help text and value.
// docs/counters.md has the same texts, and a test compares them. Gateways, kinds of objects and pools are
// labels, Services are not.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "control/sync/status.hpp"

namespace penstock::sync {

[[nodiscard]] std::vector<prometheus::MetricFamily> families(const SyncReading& reading);
// Prometheus text format.
[[nodiscard]] std::string metrics_text(const SyncReading& reading);

// Resident memory of this process in bytes; 0 if /proc does not provide it.
[[nodiscard]] uint64_t resident_bytes();

}  // namespace penstock::sync
