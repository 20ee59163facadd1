// SPDX-License-Identifier: Apache-2.0
#include "drivers/eal/device_string.hpp"

#include <algorithm>
#include <cctype>

#include "drivers/pmd/profiles.hpp"
#include "drivers/port/bond.hpp"

namespace penstock::drivers {
namespace {

bool is_hex(std::string_view text, size_t length) {
    return text.size() == length &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// "net_af_packet0" and "net_af_packet_lan" both belong to net_af_packet. DPDK also finds a vdev's driver by
// the start of its name.
std::string driver_of_vdev(std::string_view name) {
    const std::string_view known = pmd_profile(name).driver;
    if (!known.empty()) {
        return std::string(known);
    }
    while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
        name.remove_suffix(1);
    }
    return std::string(name);
}

}  // namespace

bool is_pci_address(std::string_view name) {
    if (name.size() == 12) {
        if (!is_hex(name.substr(0, 4), 4) || name[4] != ':') {
            return false;
        }
        name.remove_prefix(5);
    }
    return name.size() == 7 && is_hex(name.substr(0, 2), 2) && name[2] == ':' &&
           is_hex(name.substr(3, 2), 2) && name[5] == '.' && name[6] >= '0' && name[6] <= '7';
}

Result<DeviceString> DeviceString::parse(std::string_view text) {
    const std::string shown = "device \"" + std::string(text) + "\": ";
    DeviceString device;
    size_t start = text.find(',');
    device.name = std::string(text.substr(0, start));
    device.is_pci = is_pci_address(device.name);
    if (!device.is_pci) {
        if (!device.name.starts_with("net_")) {
            return fail(Errc::InvalidArgument, shown +
                                                   "neither a PCI address like 0000:03:00.0 nor a virtual "
                                                   "device like net_af_packet0,iface=eth1");
        }
        device.driver = driver_of_vdev(device.name);
    } else if (device.name.size() == 7) {
        device.name = "0000:" + device.name;  // DPDK's form of the name
    }
    while (start != std::string_view::npos) {
        const size_t end = text.find(',', start + 1);
        const std::string_view pair =
            text.substr(start + 1, end == std::string_view::npos ? end : end - start - 1);
        const size_t equals = pair.find('=');
        if (equals == 0 || equals == std::string_view::npos || equals + 1 == pair.size()) {
            return fail(Errc::InvalidArgument, shown + "\"" + std::string(pair) + "\" is not NAME=VALUE");
        }
        const std::string key(pair.substr(0, equals));
        if (device.argument(key) != nullptr &&
            (device.driver != "net_bonding" || (key != kBondMember && key != "member"))) {
            return fail(Errc::InvalidArgument, shown + key + " is given twice");
        }
        device.arguments.emplace_back(key, pair.substr(equals + 1));
        start = end;
    }
    if (!device.is_pci && pmd_profile(device.driver).needs_interface && device.argument("iface") == nullptr) {
        return fail(Errc::InvalidArgument, shown + device.driver + " needs iface=INTERFACE");
    }
    if (device.driver == "net_bonding") {
        if (auto settled = complete_bond(device); !settled) {
            return fail(Errc::InvalidArgument, shown + settled.error().what);
        }
    }
    return device;
}

const std::string* DeviceString::argument(std::string_view key) const noexcept {
    const auto found = std::ranges::find_if(arguments, [&](const auto& pair) { return pair.first == key; });
    return found == arguments.end() ? nullptr : &found->second;
}

std::vector<std::string> DeviceString::members() const {
    std::vector<std::string> found;
    for (const auto& [key, value] : arguments) {
        if (driver == "net_bonding" && key == kBondMember) {
            found.push_back(is_pci_address(value) && value.size() == 7 ? "0000:" + value : value);
        }
    }
    return found;
}

bool DeviceString::complete(std::string_view key, std::string value) {
    if (argument(key) != nullptr) {
        return false;
    }
    arguments.emplace_back(key, std::move(value));
    return true;
}

std::string DeviceString::arguments_text() const {
    std::string text;
    for (const auto& [key, value] : arguments) {
        text += (text.empty() ? "" : ",") + key + "=" + value;
    }
    return text;
}

std::string DeviceString::to_string() const {
    return arguments.empty() ? name : name + "," + arguments_text();
}

std::string DeviceString::kernel_interface() const {
    const std::string* interface =
        is_pci || !pmd_profile(driver).uses_interface ? nullptr : argument("iface");
    return interface == nullptr ? "" : *interface;
}

}  // namespace penstock::drivers
