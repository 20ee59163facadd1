// SPDX-License-Identifier: Apache-2.0
// The pages of penstock-sync for the kubelet and for Prometheus. Pure functions from a reading to a page.
//
//   /healthz   503 if a thread's loop is stuck: restarting the process would help
//   /readyz    503 until every collection was listed once and a gateway applied a state; send no traffic yet
//   /metrics   metrics.hpp
//
// Losing the API server fails neither page: the gateways keep their state, and a restart would only lose it.
#pragma once

#include "control/http/server.hpp"
#include "control/sync/status.hpp"

namespace penstock::sync {

// Each thread's loop has a round at least every ten seconds. Evaluating and sending a state of 250,000
// endpoints may take another ten.
inline constexpr std::chrono::seconds kStuckAfter{60};

[[nodiscard]] http::Response health_page(const SyncReading& reading);
[[nodiscard]] http::Response ready_page(const SyncReading& reading);

[[nodiscard]] http::Routes pages(const ReadSync& read);

}  // namespace penstock::sync
