// Which endpoints may receive a new flow, in the order of EP-020. Each step is a function from candidates to candidates, so that a step can
// be put between two others, and shown alone when somebody asks where an endpoint went:
//
//   merged_endpoints      all slices of the Service, one family, one service port; one candidate for each (address, port)
//   drop_forbidden        addresses that nothing may ever be forwarded to (EP-006)
//   cluster_set           the ready ones, or else the terminating ones that still serve (EP-012)
//   local_set             the same question asked of this node alone (EP-013)
//
// What each policy makes of the sets is traffic_policy.hpp's business; health, weight, affinity and the scheduler come after.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/semantics/address_count.hpp"
#include "control/semantics/conflicts.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/slices.hpp"

namespace penstock::semantics {

// What an endpoint's conditions come to; the better one first (EP-004).
enum class Readiness : uint8_t {
    Ready,        // the normal set, whatever `terminating` says (EP-011)
    Terminating,  // not ready, but serving and terminating: used where nobody is ready
    Unusable,
};

// EP-010: what is not said counts as ready and serving, and not as terminating.
[[nodiscard]] constexpr Readiness readiness_of(const kube::Endpoint& endpoint) noexcept {
    if (endpoint.ready.value_or(true)) {
        return Readiness::Ready;
    }
    return endpoint.serving.value_or(true) && endpoint.terminating.value_or(false) ? Readiness::Terminating : Readiness::Unusable;
}

struct Candidate {
    IpAddr address;
    L4Port port = 0;
    Readiness readiness = Readiness::Ready;
    const kube::Endpoint* endpoint = nullptr;  // nodeName, zone and hints; borrowed from the object set
};
using Candidates = std::vector<Candidate>;

// The union over `slices` of one family whose ports contain (port_name, protocol), each endpoint with its own slice's port number (EP-003).
// Sorted by (address, port) and unique; of duplicates the best by readiness, then by slice name, is kept (EP-004). What cannot be read is
// skipped alone and said (EP-005, EP-009).
[[nodiscard]] Candidates merged_endpoints(std::span<const NamedSlice> slices, const std::string& port_name, Protocol protocol,
                                          IpFamily family, Notices& notices);

// Takes out what EP-006 forbids: by what the address is, because it is a ClusterIP, or because a frontend of Penstock's own is there.
void drop_forbidden(Candidates& candidates, const AddressCount& cluster_ips, const FrontendOwners& owners, Notices& notices);

// EP-011, EP-012.
[[nodiscard]] Candidates cluster_set(const Candidates& candidates);

// EP-013. Local are the endpoints whose nodeName is `node_name`, exactly; an endpoint without one is nowhere, and "" is nobody's name.
[[nodiscard]] Candidates local_set(const Candidates& candidates, const std::string& node_name);

}  // namespace penstock::semantics
