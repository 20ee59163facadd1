// Who may take an external IP. Anyone who may create a Service may write any address into spec.externalIPs, and so catch the traffic meant
// for it (CVE-2020-8554): nothing is served that the administrator has not allowed, and some addresses never are (XIP-006).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/prefix_set.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

// What a policy allows and protects, laid out to be asked: one look-up for the namespace, one for each length of its prefixes.
class ExternalIpRules {
 public:
    explicit ExternalIpRules(const Policy& policy);

    [[nodiscard]] bool protects(const IpAddr& address) const { return protected_.contains(address); }
    [[nodiscard]] bool allow(const IpAddr& address, const std::string& namespace_name,
                             const annotations::Labels& service_labels) const;

 private:
    // What the rules for one namespace add up to.
    struct Granted {
        PrefixSet to_all;
        std::vector<std::pair<annotations::Selector, PrefixSet>> to_selected;
        [[nodiscard]] bool contains(const IpAddr& address, const annotations::Labels& service_labels) const;
    };

    std::unordered_set<IpAddr> protected_;
    Granted everywhere_;
    std::unordered_map<std::string, Granted> by_namespace_;
};

// The rules in the light of what the cluster itself uses. Borrows both.
class ExternalIpRights {
 public:
    ExternalIpRights(const ClusterFacts& facts, const ExternalIpRules& rules)
        : facts_(facts), rules_(rules) {}

    // Why a Service of `namespace_name` may not have `address`; nothing where it may. The text names what is missing, ready to be pasted.
    [[nodiscard]] std::optional<std::string> why_refused(const IpAddr& address,
                                                         const std::string& namespace_name,
                                                         const annotations::Labels& service_labels) const;

 private:
    const ClusterFacts& facts_;
    const ExternalIpRules& rules_;
};

}  // namespace penstock::semantics
