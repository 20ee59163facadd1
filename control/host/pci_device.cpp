// SPDX-License-Identifier: Apache-2.0
#include "control/host/pci_device.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

// "0x8086"
uint16_t hex_file(const Root& root, const std::string& path) {
    const std::string text = root.text(path).value_or("");
    return whole_number<uint16_t>(text.starts_with("0x") ? std::string_view(text).substr(2) : text, 16)
        .value_or(0);
}

}  // namespace

std::string pci_folder(const std::string& address) {
    return "/sys/bus/pci/devices/" + address;
}

std::optional<PciDevice> read_pci_device(const Root& root, const std::string& address) {
    const std::string folder = pci_folder(address);
    if (!root.exists(folder)) {
        return std::nullopt;
    }
    PciDevice device{
        .address = address,
        .id = {hex_file(root, folder + "/vendor"), hex_file(root, folder + "/device"),
               hex_file(root, folder + "/subsystem_vendor"), hex_file(root, folder + "/subsystem_device")},
        .kernel_driver = root.link_name(folder + "/driver").value_or(""),
        .numa_node = std::nullopt,  // the kernel writes -1 if there is none
        .iommu_group = root.link_name(folder + "/iommu_group").value_or(""),
        .interfaces = root.names(folder + "/net"),
        .group_members = root.names(folder + "/iommu_group/devices")};
    if (const auto node = root.number(folder + "/numa_node")) {
        device.numa_node = static_cast<unsigned>(*node);
    }
    std::erase(device.group_members, address);
    return device;
}

std::string pci_id_text(const PciId& id) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%04x:%04x", unsigned{id.vendor}, unsigned{id.device});
    return text.data();
}

}  // namespace penstock::host
