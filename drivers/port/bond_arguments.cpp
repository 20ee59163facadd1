// SPDX-License-Identifier: Apache-2.0
// The device arguments of a bond. Without DPDK, as the rest of a device string.
#include <algorithm>
#include <array>

#include "drivers/eal/device_string.hpp"
#include "drivers/port/bond.hpp"

namespace penstock::drivers {
namespace {

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

}  // namespace penstock::drivers
