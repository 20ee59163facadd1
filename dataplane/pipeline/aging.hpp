// SPDX-License-Identifier: Apache-2.0
// Aging of the connection table: a scan in slices, between bursts, that removes idle connections
// (conn/aging.hpp). It also sends what is due about connections that are not removed yet: the second probe of
// an ended flow (flow_orders.hpp) and probes for life (liveness.hpp).
#pragma once

#include <cstdint>

namespace penstock::pipeline {

struct WorkerContext;

// One scan for idle connections, over `budget_units` units.
void age_connections(WorkerContext& ctx, uint32_t budget_units) noexcept;

}  // namespace penstock::pipeline
