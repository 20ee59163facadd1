// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/assignment_settings.hpp"

#include <string>
#include <utility>

namespace penstock::sync {

AddressAssignment::Settings assignment_settings(const Options& options, const std::vector<IpAddr>& server) {
    AddressAssignment::Settings settings{.policy = options.policy, .protected_prefixes = {}};
    const auto exclude = [&](const Prefix& prefix, std::string what) {
        settings.protected_prefixes.push_back({prefix, std::move(what)});
    };
    for (const Prefix& prefix : options.pools_exclude) {
        exclude(prefix, "--address-pools-exclude");
    }
    for (const Prefix& prefix : options.policy.cluster_cidrs) {
        exclude(prefix, "--cluster-cidr");
    }
    for (const IpAddr& address : options.policy.protected_addresses) {
        exclude(Prefix::host(address), "--protected-addresses");
    }
    for (const IpAddr& address : server) {
        exclude(Prefix::host(address), "the API server");
    }
    return settings;
}

}  // namespace penstock::sync
