// Which of a Service's externalIPs are served: each is judged alone (XIP-004), and the judgement is never silent.
#pragma once

#include <string_view>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/rights.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

// What a Service names as external IPs, as it is written: spec.externalIPs, then what its annotation adds (XIP-008).
struct NamedExternalIp {
    std::string_view text;    // into the object
    std::string_view origin;  // field or annotation
};
[[nodiscard]] std::vector<NamedExternalIp> named_external_ips(const kube::Service& service,
                                                              bool with_annotation);

// In the order of the object, each address once (SVC-019).
[[nodiscard]] std::vector<IpAddr> external_ips_of(const kube::ObjectName& name, const kube::Service& service,
                                                  Families families, const Policy& policy,
                                                  const ExternalIpRights& rights, Notices& notices);

}  // namespace penstock::semantics
