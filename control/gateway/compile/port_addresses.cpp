// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/port_addresses.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "dataplane/base/limits.hpp"

namespace penstock::gateway {
namespace {

bool contains(const std::vector<IpAddr>& list, const IpAddr& address) {
    return std::ranges::find(list, address) != list.end();
}

bool is_global(const IpAddr& address) {
    return !address.is_loopback() && !address.is_link_local() && !address.is_unspecified() &&
           !address.is_multicast();
}

// If no prefix of the family is given, every address of the family matches (NODEPORT-003).
bool is_in_any(const std::vector<Prefix>& within, const IpAddr& address) {
    const auto same_family = [&](const Prefix& prefix) { return prefix.family() == address.family(); };
    return std::ranges::none_of(within, same_family) ||
           std::ranges::any_of(within, [&](const Prefix& prefix) { return prefix.contains(address); });
}

// The twin's addresses in order of preference: addresses in a subnet before single ones (/32, /128), which
// mostly are VIPs.
std::vector<IpAddr> by_preference(const std::vector<route::LocalAddress>& present, NicPortId port) {
    std::vector<std::pair<bool, IpAddr>> order;
    for (const auto& local : present) {
        if (local.port == port) {
            order.emplace_back(local.prefix_length == local.address.bits(), local.address);
        }
    }
    std::ranges::sort(order);
    std::vector<IpAddr> addresses;
    std::ranges::transform(order, std::back_inserter(addresses), &std::pair<bool, IpAddr>::second);
    return addresses;
}

std::optional<IpAddr> first_global(const TwinAddresses& twin, const std::vector<IpAddr>& present,
                                   IpFamily family) {
    for (const auto* list : {&twin.configured, &present}) {
        for (const IpAddr& address : *list) {
            if (address.family() == family && is_global(address) && contains(present, address)) {
                return address;
            }
        }
    }
    return std::nullopt;
}

}  // namespace

std::vector<model::PortAddress> port_addresses(const std::vector<TwinAddresses>& twins,
                                               const std::vector<route::LocalAddress>& present) {
    std::vector<model::PortAddress> out;
    for (const auto& local : present) {
        if (local.port.value < twins.size()) {
            const TwinAddresses& twin = twins[local.port.value];
            out.push_back(
                {twin.name, local.address, local.prefix_length, contains(twin.configured, local.address)});
        }
    }
    std::ranges::sort(out);
    return out;
}

std::vector<IpAddr> node_port_addresses(const model::NodePortAddresses& rule,
                                        const std::vector<model::PortAddress>& addresses,
                                        const std::set<IpAddr>& vips) {
    std::vector<IpAddr> out;
    for (const auto& candidate : addresses) {
        const IpAddr& address = candidate.address;
        const bool of_node = contains(rule.node_addresses, address);
        if (is_global(address) && is_in_any(rule.within, address) && (!rule.primary_only || of_node) &&
            (!vips.contains(address) || of_node || candidate.configured)) {
            out.push_back(address);
        }
    }
    std::ranges::sort(out);
    const auto repeated = std::ranges::unique(out);
    out.erase(repeated.begin(), repeated.end());
    return out;
}

std::vector<nat::SnatAddress> snat_addresses(const std::vector<IpAddr>& given,
                                             const std::vector<TwinAddresses>& twins,
                                             const std::vector<route::LocalAddress>& present,
                                             const std::vector<IpAddr>& elsewhere,
                                             std::vector<nat::SnatAddress> of_shares) {
    std::vector<nat::SnatAddress> out;
    // On a twin or elsewhere on the host (for example loopback). Linux opens connections from it too.
    const auto is_of_host = [&](const IpAddr& address) {
        return std::ranges::find(present, address, &route::LocalAddress::address) != present.end() ||
               contains(elsewhere, address);
    };
    for (const IpAddr& address : given) {
        out.push_back({.address = address, .egress = {}, .shared_with_host = is_of_host(address)});
    }
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        if (std::ranges::find(given, family, &IpAddr::family) != given.end()) {
            continue;
        }
        for (uint8_t port = 0; port < twins.size(); ++port) {
            std::vector<IpAddr> candidates = by_preference(present, {port});
            std::erase_if(candidates, [&](const IpAddr& candidate) {
                return std::ranges::find(of_shares, candidate, &nat::SnatAddress::address) != of_shares.end();
            });
            if (const auto address = first_global(twins[port], candidates, family)) {
                out.push_back({.address = *address, .egress = {port}, .shared_with_host = true});
            }
        }
    }
    for (nat::SnatAddress& address : of_shares) {
        address.shared_with_host = is_of_host(address.address);
        out.push_back(address);
    }
    out.resize(std::min<size_t>(out.size(), limits::kSnatAddressesMax));
    return out;
}

}  // namespace penstock::gateway
