// SPDX-License-Identifier: Apache-2.0
// The endpoints of a Service whose flows stay. Pure functions.
#pragma once

#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/lb/flow_endpoints.hpp"

namespace penstock::gateway {

// Sockets of the endpoints that new flows may get, of all backend sets. Sorted, each once.
std::vector<SocketAddress> offered_endpoints(const model::Service& service);

// Sockets of the endpoints whose established flows stay: those that are offered, and those that a policy, a
// topology key or the end of readiness excludes from new flows. UDP flows stay only at an endpoint that
// serves (UDP-001). An endpoint at a forbidden address keeps none. Sorted, each once.
std::vector<SocketAddress> endpoints_with_flows(const model::Service& service);

// Sockets of listed endpoints. Sorted, each once.
std::vector<SocketAddress> places_of(const lb::FlowEndpoints& endpoints);

}  // namespace penstock::gateway
