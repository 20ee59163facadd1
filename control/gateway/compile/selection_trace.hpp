// SPDX-License-Identifier: Apache-2.0
// Explains the endpoints that a new flow may choose: EP-020 step by step, as text, from the endpoints that a
// service port's set contains and those that it excluded. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/model/desired.hpp"

namespace penstock::gateway {

// A frontend of the desired state that matches a packet. Borrowed from the state.
struct MetFrontend {
    const model::Service* service = nullptr;
    const model::Frontend* frontend = nullptr;
};

// Matches by exact address; class NodePort matches by family and port only. Empty if the state has no such
// frontend (any more).
[[nodiscard]] std::optional<MetFrontend> frontend_at(const DesiredServices& services, lb::FrontendClass cls,
                                                     const IpAddr& address, L4Port port, Protocol protocol);

// The set for a client at address `client`.
[[nodiscard]] const model::BackendSet& set_for(const MetFrontend& met, const std::vector<Prefix>& pod_cidrs,
                                               const IpAddr& client);

// First line, if it applies (ANN-32): "families: no IPv6 endpoint for new flows; IPv4 ones serve
// (penstock.io/translate-family)". Then "endpoints: 12 known, each (address, port) once", and one line for
// each step that applies to this Service, with the number of endpoints left and the endpoints excluded. The
// first kNamesMax of these are listed by name.
inline constexpr size_t kNamesMax = 8;
[[nodiscard]] std::vector<std::string> selection_trace(const model::BackendSet& set);

}  // namespace penstock::gateway
