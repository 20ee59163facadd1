// Which of a Service's externalIPs are served: each is judged alone (XIP-004), and the judgement is never silent.
#pragma once

#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/rights.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

// In the order of the object, each address once (SVC-019).
[[nodiscard]] std::vector<IpAddr> external_ips_of(const kube::Service& service, Families families, const ExternalIpRights& rights,
                                                  Notices& notices);

}  // namespace penstock::semantics
