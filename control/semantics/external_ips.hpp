// SPDX-License-Identifier: Apache-2.0
// Selection of the externalIPs of a Service that are served. Each address is checked separately (XIP-004),
// and every refusal produces a notice.
#pragma once

#include <string_view>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/rights.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

// An external IP as the Service spells it: from spec.externalIPs, then from its annotation (XIP-008).
struct NamedExternalIp {
    std::string_view text;    // points into the object
    std::string_view origin;  // the field or annotation it comes from
};
[[nodiscard]] std::vector<NamedExternalIp> named_external_ips(const kube::Service& service,
                                                              bool with_annotation);

// The served addresses in the order of the object, without duplicates (SVC-019).
[[nodiscard]] std::vector<IpAddr> external_ips_of(const kube::ObjectName& name, const kube::Service& service,
                                                  Families families, const Policy& policy,
                                                  const ExternalIpRights& rights, Notices& notices);

}  // namespace penstock::semantics
