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

struct Mode {
    std::string_view name;  // as in Linux
    std::string_view number;
    std::string_view why_not;
};
constexpr std::array<Mode, 7> kModes{{
    {"balance-rr", "0", "it sends a flow's packets by all members in turn, which reorders them"},
    {"active-backup", "1", ""},
    {"balance-xor", "2", ""},
    {"broadcast", "3", "each packet would be sent once by every member"},
    {"802.3ad", "4", "its LACP must be served every 100 ms even without traffic, which workers do not do"},
    {"balance-tlb", "5", "it moves MAC addresses between members, but the twin has only one"},
    {"balance-alb", "6", "it answers ARP itself, but ARP must be answered by the twin"},
}};

Status refuse(std::string_view key, const std::string& why) {
    return fail(Errc::InvalidArgument, std::string(key) + ": " + why);
}

Status complete_mode(std::string& mode) {
    const auto known =
        std::ranges::find_if(kModes, [&](const Mode& one) { return mode == one.name || mode == one.number; });
    if (known == kModes.end()) {
        return refuse("mode", mode + " is neither active-backup (1) nor balance-xor (2)");
    }
    if (!known->why_not.empty()) {
        return refuse("mode", std::string(known->name) + " (" + std::string(known->number) +
                                  ") is unsuitable for a gateway: " + std::string(known->why_not));
    }
    mode = known->number;
    return {};
}

}  // namespace

Status complete_bond(DeviceString& device) {
    device.complete("mode", "active-backup");
    for (auto& [key, value] : device.arguments) {
        if (key == "member") {
            key = kBondMember;
        } else if (key == "mode") {
            PENSTOCK_TRY_STATUS(complete_mode(value));
        }
    }
    std::vector<std::string> members = device.members();
    if (members.empty()) {
        return refuse("member", "a bond needs at least one");
    }
    std::ranges::sort(members);
    if (const auto twice = std::ranges::adjacent_find(members); twice != members.end()) {
        return refuse("member", *twice + " is given twice");
    }
    if (*device.argument("mode") == "2") {
        // DPDK's default hashes MAC addresses, and two routers have only one pair of them.
        device.complete("xmit_policy", "l34");
    }
    return {};
}

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
