// SPDX-License-Identifier: Apache-2.0
// The clients that may open flows to a Service's LoadBalancer IPs (SRC-001..004). Errors restrict access,
// they never widen it: a list without any valid entry allows no client.
#pragma once

#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

struct SourceRanges {
    bool restricted = false;               // a list applies
    bool deny = false;                     // the list names the clients that are denied (ANN-04)
    std::vector<Prefix> listed;            // sorted, unique
    Families families = Families::both();  // of the Service

    // Whether frontends of `family` are filtered by the list. If the list has no CIDR of the family, all
    // clients of that family are denied (SRC-003), with two exceptions. If the list names denied clients, the
    // family stays open. If `compat_kube_proxy` is set, the family also stays open, as with kube-proxy,
    // provided that the list has a CIDR of the other family and the Service itself has this family:
    // kube-proxy serves no other family (ANN-32).
    [[nodiscard]] bool filters(IpFamily family, bool compat_kube_proxy) const noexcept;
    bool operator==(const SourceRanges&) const = default;
};

// Reads the field, otherwise the annotation. Both apply to type LoadBalancer only (SRC-004). `deny` comes
// from ANN-04. A list without a valid entry denies all clients even then (SRC-002).
[[nodiscard]] SourceRanges source_ranges_of(const kube::Service& service, ServiceType type, bool deny,
                                            Notices& notices);

}  // namespace penstock::semantics
