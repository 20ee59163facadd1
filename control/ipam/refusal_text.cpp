// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/refusal_text.hpp"

#include <algorithm>

#include "control/semantics/text.hpp"

namespace penstock::ipam {
namespace {

constexpr size_t kPoolsNamed = 3;  // LB-024

std::string first_names(const PoolTable& pools) {
    if (pools.pools().empty()) {
        return "there are no pools";
    }
    std::string text = "pools:";
    for (size_t i = 0; i < std::min(kPoolsNamed, pools.pools().size()); ++i) {
        text += (i == 0 ? " " : ", ") + semantics::quoted(pools.pools()[i].name);
    }
    if (pools.pools().size() > kPoolsNamed) {
        text += " and " + std::to_string(pools.pools().size() - kPoolsNamed) + " more";
    }
    return text;
}

}  // namespace

const char* to_string(RefusalReason reason) noexcept {
    switch (reason) {
        case RefusalReason::NoPool:
            return "NoPool";
        case RefusalReason::PoolExhausted:
            return "PoolExhausted";
        case RefusalReason::AddressTaken:
            return "AddressTaken";
        case RefusalReason::AddressOutsidePools:
            return "AddressOutsidePools";
        case RefusalReason::NotAllowedForNamespace:
            return "NotAllowedForNamespace";
        case RefusalReason::FamilyMissing:
            return "FamilyMissing";
        case RefusalReason::SharingRefused:
            return "SharingRefused";
        case RefusalReason::LoadBalancerIPConflict:
            return "LoadBalancerIPConflict";
    }
    return "";
}

std::string name_text(const kube::ObjectName& service) {
    return service.namespace_name + "/" + service.name;
}

std::string no_such_pool_text(const std::string& pool, const PoolTable& pools) {
    return "the requested pool " + semantics::quoted(pool) + " does not exist; " + first_names(pools);
}

std::string outside_text(const IpAddr& address, const PoolTable& pools) {
    return address.to_string() + " is in no pool; " + first_names(pools);
}

Allocation allocation_of(const std::vector<IpAddr>& addresses, const PoolTable& pools,
                         std::optional<Refusal> refusal) {
    Allocation allocation{.refusal = std::move(refusal)};
    for (const IpAddr& address : addresses) {
        allocation.addresses.push_back({.address = address, .pool = pools.name_of_pool_with(address)});
        if (allocation.addresses.back().pool.empty()) {
            allocation.pool_missing += (allocation.pool_missing.empty() ? "" : "; ") +
                                       outside_text(address, pools) + "; the Service keeps it";
        }
    }
    return allocation;
}

RefusalReason reason_of(Obstacle obstacle, Choice choice) noexcept {
    switch (obstacle) {
        case Obstacle::Exhausted:
            return RefusalReason::PoolExhausted;
        case Obstacle::FamilyMissing:
            return RefusalReason::FamilyMissing;
        case Obstacle::NotAllowed:
            return choice == Choice::Requested ? RefusalReason::NotAllowedForNamespace
                                               : RefusalReason::NoPool;
        case Obstacle::Disabled:
        case Obstacle::OtherScope:
        case Obstacle::NotAutomatic:
            break;
    }
    return RefusalReason::NoPool;
}

Refusal refusal_of(const Request& request, std::vector<std::pair<PoolTable::Index, PassedOver>> passed_over,
                   const PoolTable& pools, Choice choice) {
    std::string message = "no pool gives";
    for (size_t i = 0; i < request.families.size(); ++i) {
        message += (i == 0 ? " " : " and ") + std::string(to_string(request.families[i]));
    }
    message += request.internal ? " for internal use" : "";
    if (passed_over.empty()) {
        return {RefusalReason::NoPool, message + ": " + first_names(pools)};
    }
    std::ranges::stable_sort(passed_over, {}, [](const auto& entry) { return entry.second.obstacle; });
    for (size_t i = 0; i < std::min(kPoolsNamed, passed_over.size()); ++i) {
        message += (i == 0 ? ": pool " : "; pool ") + semantics::quoted(pools[passed_over[i].first].name) +
                   ": " + passed_over[i].second.why;
    }
    if (passed_over.size() > kPoolsNamed) {
        message += "; and " + std::to_string(passed_over.size() - kPoolsNamed) + " more";
    }
    return {reason_of(passed_over.front().second.obstacle, choice), std::move(message)};
}

}  // namespace penstock::ipam
