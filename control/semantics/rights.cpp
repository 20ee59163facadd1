// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/rights.hpp"

#include <algorithm>

namespace penstock::semantics {

ExternalIpRules::ExternalIpRules(const Policy& policy)
    : protected_(policy.protected_addresses.begin(), policy.protected_addresses.end()) {
    for (const Prefix& cidr : policy.allowed_external_cidrs) {
        everywhere_.to_all.add(cidr);
    }
    const auto grant = [](Granted& granted, const ExternalIpRule& rule) {
        if (!rule.services.is_empty()) {
            granted.to_selected.emplace_back(rule.services, PrefixSet(rule.cidrs));
            return;
        }
        for (const Prefix& cidr : rule.cidrs) {
            granted.to_all.add(cidr);
        }
    };
    for (const ExternalIpRule& rule : policy.external_ip_rules) {
        if (rule.all_namespaces) {
            grant(everywhere_, rule);
        }
        for (const std::string& namespace_name : rule.namespaces) {
            grant(by_namespace_[namespace_name], rule);
        }
    }
}

bool ExternalIpRules::Granted::contains(const IpAddr& address,
                                        const annotations::Labels& service_labels) const {
    return to_all.longest_match(address) || std::ranges::any_of(to_selected, [&](const auto& selected) {
               return selected.second.longest_match(address) && selected.first.matches(service_labels);
           });
}

bool ExternalIpRules::allow(const IpAddr& address, const std::string& namespace_name,
                            const annotations::Labels& service_labels) const {
    if (everywhere_.contains(address, service_labels)) {
        return true;
    }
    const auto own = by_namespace_.find(namespace_name);
    return own != by_namespace_.end() && own->second.contains(address, service_labels);
}

std::optional<std::string> ExternalIpRights::why_refused(const IpAddr& address,
                                                         const std::string& namespace_name,
                                                         const annotations::Labels& service_labels) const {
    // Refusals that no permission can change come first, so the administrator does not add a rule without
    // effect.
    if (facts_.cluster_ips.contains(address)) {
        return address.to_string() + " is an allocated ClusterIP";
    }
    if (const auto cidr = facts_.pod_cidrs.longest_match(address)) {
        return address.to_string() + " is in the Pod CIDR " + cidr->to_string();
    }
    if (rules_.protects(address)) {
        return address.to_string() + " is a protected address";
    }
    if (rules_.allow(address, namespace_name, service_labels)) {
        return std::nullopt;
    }
    // Quoted, because YAML would parse a namespace of digits as a number.
    const std::string host = Prefix::host(address).to_string();
    return address.to_string() + " is not allowed for namespace " + namespace_name +
           "; add to the file of --external-ip-policy: - {namespaces: [\"" + namespace_name +
           "\"], cidrs: [\"" + host + "\"]}, or for all namespaces: --allowed-external-cidrs=" + host;
}

}  // namespace penstock::semantics
