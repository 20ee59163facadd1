// Who may take an external IP. Anyone who may create a Service may write any address into spec.externalIPs, and so catch the traffic meant
// for it (CVE-2020-8554): nothing is served that the administrator has not allowed, and some addresses never are (XIP-006).
#pragma once

#include <optional>
#include <string>
#include <unordered_set>

#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/prefix_set.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

class ExternalIpRights {
 public:
    // Borrows `facts`, which must live as long.
    ExternalIpRights(const ClusterFacts& facts, const Policy& policy);

    // Why `address` may not be an external IP; nothing where it may. The text names what is missing, ready to be pasted.
    [[nodiscard]] std::optional<std::string> why_refused(const IpAddr& address) const;

 private:
    const ClusterFacts& facts_;
    std::unordered_set<IpAddr> protected_;
    PrefixSet allowed_;
};

}  // namespace penstock::semantics
