// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/share_snat.hpp"

#include <algorithm>

#include "dataplane/base/limits.hpp"

namespace penstock::gateway {
namespace {

static_assert(limits::kSnatGroupsMax == 1 + shares::kSharesMax);

uint8_t group_of(size_t share) {
    return static_cast<uint8_t>(share + 1);
}

nat::PortPart part_of(shares::Role role) {
    switch (role) {
        case shares::Role::None:
            break;
        case shares::Role::Primary:
            return nat::PortPart::Primary;
        case shares::Role::Heir:
            return nat::PortPart::Heir;
    }
    return nat::PortPart::None;
}

}  // namespace

std::vector<nat::SnatAddress> snat_of_shares(const GatewayShares* shares) {
    std::vector<nat::SnatAddress> addresses;
    for (size_t share = 0; shares != nullptr && share < shares->plan().shares.size(); ++share) {
        const nat::PortPart part = part_of(shares->part_in(static_cast<uint8_t>(share)).role);
        for (const IpAddr& address : shares->plan().shares[share].snat) {
            addresses.push_back({.address = address, .egress = {}, .group = group_of(share), .part = part});
        }
    }
    return addresses;
}

uint8_t snat_group_in(const GatewayShares& shares, uint8_t share) {
    const bool has_addresses = !shares.plan().shares[share].snat.empty();
    return has_addresses && shares.part_in(share).role != shares::Role::None ? group_of(share) : uint8_t{0};
}

uint8_t snat_group_of(const GatewayShares* shares, const IpAddr& vip) {
    if (shares == nullptr) {
        return 0;
    }
    return shares->is_spread(vip) ? nat::kGroupOfClient : snat_group_in(*shares, shares->share_of(vip));
}

std::vector<IpAddr> announced_snat(const GatewayShares& shares) {
    std::vector<IpAddr> announced;
    for (const nat::SnatAddress& address : snat_of_shares(&shares)) {
        if (address.part != nat::PortPart::None) {
            announced.push_back(address.address);
        }
    }
    std::ranges::sort(announced);
    return announced;
}

std::string snat_obstacle(const shares::Plan& plan, const std::vector<IpAddr>& given, size_t ports) {
    size_t wanted = 0;
    for (size_t share = 0; share < plan.shares.size(); ++share) {
        for (const IpAddr& address : plan.shares[share].snat) {
            if (std::ranges::find(given, address) != given.end()) {
                return "SNAT address " + address.to_string() + " of share " + std::to_string(share) +
                       " is a --snat-address of this gateway: it would use ports of other gateways";
            }
        }
        wanted += plan.shares[share].snat.size();
    }
    size_t own = given.size();
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        own += std::ranges::find(given, family, &IpAddr::family) == given.end() ? ports : 0;
    }
    const size_t room = limits::kSnatAddressesMax - std::min<size_t>(own, limits::kSnatAddressesMax);
    return wanted <= room
               ? ""
               : std::to_string(wanted) + " SNAT addresses of shares, and room for " + std::to_string(room) +
                     ": a gateway has at most " + std::to_string(limits::kSnatAddressesMax) + ", of which " +
                     std::to_string(own) +
                     " are its own (--snat-address, otherwise one of each family and NicPort)";
}

}  // namespace penstock::gateway
