// Which clients may open flows to a Service's LoadBalancer IPs (SRC-001..004). Errors close the door, they never open it: a list in which
// no entry can be read allows nobody.
#pragma once

#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

struct SourceRanges {
    bool restricted = false;               // a list is in force
    bool deny = false;                     // it names those who may not (ANN-04)
    std::vector<Prefix> listed;            // sorted, unique
    Families families = Families::both();  // the Service's own

    // Whether frontends of `family` are filtered by the list. A family without a CIDR in the list is filtered, and so denied (SRC-003),
    // unless `compat_kube_proxy` asks for what kube-proxy does: it stays open, as long as the list holds a CIDR of the other family. Only a
    // family of the Service itself does, as kube-proxy serves no other (ANN-32). It stays open as well where the list names those who may
    // not.
    [[nodiscard]] bool filters(IpFamily family, bool compat_kube_proxy) const noexcept;
    bool operator==(const SourceRanges&) const = default;
};

// The field, else the annotation; either means something on type LoadBalancer only (SRC-004). `deny` is ANN-04's; a list without a valid
// entry denies everyone all the same (SRC-002).
[[nodiscard]] SourceRanges source_ranges_of(const kube::Service& service, ServiceType type, bool deny,
                                            Notices& notices);

}  // namespace penstock::semantics
