// SPDX-License-Identifier: Apache-2.0
// Addresses from pools as Prometheus metrics: usage of the pools, refusals (LB-024), leader election and
// status writes. Pure.
#pragma once

#include <prometheus/metric_family.h>

#include <optional>
#include <vector>

#include "control/sync/addresses/address_status.hpp"

namespace penstock::sync {

// All metrics; those without a value have no series. `status` is empty if no addresses are assigned.
[[nodiscard]] std::vector<prometheus::MetricFamily> address_families(
    const std::optional<AddressStatus>& status);

}  // namespace penstock::sync
