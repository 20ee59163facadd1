// Why a new flow may choose these endpoints and no others: EP-020 step by step, as sentences, from what a service port's set keeps and what
// it left out. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/model/desired.hpp"

namespace penstock::gateway {

// A frontend of the desired state that a packet meets. Borrowed from the state.
struct MetFrontend {
    const model::Service* service = nullptr;
    const model::Frontend* frontend = nullptr;
};

// By exact address; for class NodePort by family and port alone, whatever the address. Nothing where the state has no such frontend (any
// more).
[[nodiscard]] std::optional<MetFrontend> frontend_at(const DesiredServices& services, lb::FrontendClass cls,
                                                     const IpAddr& address, L4Port port, Protocol protocol);

// The set that a client at `address` chooses from.
[[nodiscard]] const model::BackendSet& set_for(const MetFrontend& met, const std::vector<Prefix>& pod_cidrs,
                                               const IpAddr& client);

// "families: no IPv6 endpoint for new flows; IPv4 ones serve (penstock.io/translate-family)" where that is so (ANN-32),
// "endpoints: 12 known, each (address, port) once", then a sentence for each step that this Service has, with how many are left and whom it
// took out; the first kNamesMax of them by name.
inline constexpr size_t kNamesMax = 8;
[[nodiscard]] std::vector<std::string> selection_trace(const model::BackendSet& set);

}  // namespace penstock::gateway
