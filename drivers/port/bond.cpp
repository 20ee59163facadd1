// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/bond.hpp"

#include <rte_errno.h>
#include <rte_eth_bond.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>

#include "drivers/eal/device_string.hpp"

namespace penstock::drivers {
namespace {

using PortNumbers = std::array<uint16_t, RTE_MAX_ETHPORTS>;

}  // namespace

Status join_members(uint16_t dpdk_port, size_t wanted) {
    const rte_eth_conf config{};
    if (const int result = rte_eth_dev_configure(dpdk_port, 1, 1, &config); result != 0) {
        return fail(Errc::Unavailable,
                    std::string("the bond does not accept its members: ") + rte_strerror(-result));
    }
    const size_t joined = members_of(dpdk_port).size();
    if (joined != wanted) {
        return fail(Errc::Unavailable,
                    std::to_string(joined) + " of " + std::to_string(wanted) + " members joined the bond");
    }
    // If the MAC address is not set, the bond takes its primary's at start, after the twin received the
    // current one.
    rte_ether_addr mac{};
    int result = rte_eth_macaddr_get(dpdk_port, &mac);
    if (result == 0) {
        result = rte_eth_bond_mac_address_set(dpdk_port, &mac);
    }
    if (result != 0) {
        return fail(Errc::Unavailable, "the MAC address of the bond cannot be set");
    }
    return {};
}

std::vector<std::string> members_of(uint16_t dpdk_port) {
    PortNumbers all{}, active{};
    const int members = rte_eth_bond_slaves_get(dpdk_port, all.data(), all.size());
    if (members <= 0) {
        return {};
    }
    const int at_work = std::max(0, rte_eth_bond_active_slaves_get(dpdk_port, active.data(), active.size()));
    const auto is_active = [&](uint16_t port) {
        return std::find(active.begin(), active.begin() + at_work, port) != active.begin() + at_work;
    };
    std::stable_partition(all.begin(), all.begin() + members, is_active);
    // All members with link up count as active, but only one sends and receives.
    if (rte_eth_bond_mode_get(dpdk_port) == BONDING_MODE_ACTIVE_BACKUP) {
        const int at_work_now = rte_eth_bond_primary_get(dpdk_port);
        std::stable_partition(all.begin(), all.begin() + members,
                              [&](uint16_t port) { return int{port} == at_work_now; });
    }
    std::vector<std::string> names;
    for (int i = 0; i < members; ++i) {
        char name[RTE_ETH_NAME_MAX_LEN] = "";
        rte_eth_dev_get_name_by_port(all[static_cast<size_t>(i)], name);
        names.emplace_back(name);
    }
    return names;
}

}  // namespace penstock::drivers
