// penstock-sync as Prometheus metrics, penstock_sync_*. Each stands once in a list of the .cpp with its name, its help and where its value
// is; docs/counters.md has the same words, and a test compares them. Gateways and kinds of objects are labels, Services are not.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "control/sync/status.hpp"

namespace penstock::sync {

[[nodiscard]] std::vector<prometheus::MetricFamily> families(const SyncReading& reading);
// In the text format that a scraper reads.
[[nodiscard]] std::string metrics_text(const SyncReading& reading);

// Memory that this process has in RAM; 0 where /proc does not say.
[[nodiscard]] uint64_t resident_bytes();

}  // namespace penstock::sync
