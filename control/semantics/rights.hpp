// SPDX-License-Identifier: Apache-2.0
// Permission to use external IPs. Any user who may create a Service can write any address into
// spec.externalIPs and intercept traffic for it (CVE-2020-8554). An address is therefore served only if the
// administrator has allowed it; some addresses are never allowed (XIP-006).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/policy.hpp"
#include "control/semantics/prefix_set.hpp"

namespace penstock::semantics {

// Allowed and protected addresses of a policy, indexed for lookup: one lookup for the namespace and one for
// each prefix length.
class ExternalIpRules {
 public:
    explicit ExternalIpRules(const Policy& policy);

    [[nodiscard]] bool protects(const IpAddr& address) const { return protected_.contains(address); }
    [[nodiscard]] bool allow(const IpAddr& address, const std::string& namespace_name,
                             const annotations::Labels& service_labels) const;

 private:
    // The sum of the rules for one namespace.
    struct Granted {
        PrefixSet to_all;
        std::vector<std::pair<annotations::Selector, PrefixSet>> to_selected;
        [[nodiscard]] bool contains(const IpAddr& address, const annotations::Labels& service_labels) const;
    };

    std::unordered_set<IpAddr> protected_;
    Granted everywhere_;
    std::unordered_map<std::string, Granted> by_namespace_;
};

// Combines the rules with the addresses that the cluster itself uses. References both, without ownership.
class ExternalIpRights {
 public:
    ExternalIpRights(const ClusterFacts& facts, const ExternalIpRules& rules)
        : facts_(facts), rules_(rules) {}

    // Why a Service of `namespace_name` may not use `address`; empty if it may. The text contains the missing
    // option value, ready to copy.
    [[nodiscard]] std::optional<std::string> why_refused(const IpAddr& address,
                                                         const std::string& namespace_name,
                                                         const annotations::Labels& service_labels) const;

 private:
    const ClusterFacts& facts_;
    const ExternalIpRules& rules_;
};

}  // namespace penstock::semantics
