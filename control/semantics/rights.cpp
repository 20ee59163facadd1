#include "control/semantics/rights.hpp"

namespace penstock::semantics {

ExternalIpRights::ExternalIpRights(const ClusterFacts& facts, const Policy& policy)
    : facts_(facts),
      protected_(policy.protected_addresses.begin(), policy.protected_addresses.end()),
      allowed_(policy.allowed_external_cidrs) {}

std::optional<std::string> ExternalIpRights::why_refused(const IpAddr& address) const {
    // What no permission can heal is said first, so that nobody adds a line in vain.
    if (facts_.cluster_ips.contains(address)) {
        return address.to_string() + " is an allocated ClusterIP";
    }
    if (const auto cidr = facts_.pod_cidrs.longest_match(address)) {
        return address.to_string() + " lies in the Pod CIDR " + cidr->to_string();
    }
    if (protected_.contains(address)) {
        return address.to_string() + " is a protected address";
    }
    if (!allowed_.longest_match(address)) {
        return address.to_string() + " is in none of --allowed-external-cidrs; add " + Prefix::host(address).to_string();
    }
    return std::nullopt;
}

}  // namespace penstock::semantics
