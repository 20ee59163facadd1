// SPDX-License-Identifier: Apache-2.0
// A PCI device as sysfs describes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/host/pmd_library.hpp"
#include "control/host/root.hpp"

namespace penstock::host {

struct PciDevice {
    std::string address;  // "0000:03:00.0"
    PciId id;
    std::string kernel_driver;               // that it is bound to: "ixgbe", "vfio-pci"; "": none
    std::optional<unsigned> numa_node;       // empty: the machine does not assign one
    std::string iommu_group;                 // "7"; "": none
    std::vector<std::string> interfaces;     // Linux interfaces of the device
    std::vector<std::string> group_members;  // other devices of its IOMMU group
};

// "/sys/bus/pci/devices/ADDRESS".
[[nodiscard]] std::string pci_folder(const std::string& address);
// Nullopt: the machine has no such device, or /sys cannot be read.
[[nodiscard]] std::optional<PciDevice> read_pci_device(const Root& root, const std::string& address);

// "8086:1563", as lspci -n prints it.
[[nodiscard]] std::string pci_id_text(const PciId& id);

}  // namespace penstock::host
