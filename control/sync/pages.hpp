// The pages of penstock-sync for the kubelet and for Prometheus. Pure: a reading goes in, a page comes out.
//
//   /healthz   503 where a thread has stopped going round: restarting the process would help
//   /readyz    503 until every collection was listed once and a gateway has applied a state: nothing to send traffic for yet
//   /metrics   metrics.hpp
//
// Being away from the API server is neither: the gateways keep what they have, and a restart would only lose it.
#pragma once

#include "control/http/server.hpp"
#include "control/sync/status.hpp"

namespace penstock::sync {

// Threads go round every ten seconds; working out and sending a state of 250,000 endpoints may take another ten.
inline constexpr std::chrono::seconds kStuckAfter{60};

[[nodiscard]] http::Response health_page(const SyncReading& reading);
[[nodiscard]] http::Response ready_page(const SyncReading& reading);

[[nodiscard]] http::Routes pages(const ReadSync& read);

}  // namespace penstock::sync
