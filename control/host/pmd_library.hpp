// SPDX-License-Identifier: Apache-2.0
// DPDK's installed driver libraries: the one for a virtual device by its name, the one for a PCI device by
// the IDs that each library contains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/host/root.hpp"

namespace penstock::host {

// A PCI device's IDs as in /sys/bus/pci/devices/*/{vendor,device,...}.
struct PciId {
    static constexpr uint16_t kAny = 0xffff;
    uint16_t vendor = 0, device = 0, subsystem_vendor = kAny, subsystem_device = kAny;
    // Whether `device` has these IDs; kAny in this ID matches all.
    [[nodiscard]] bool matches(const PciId& device) const noexcept;
    bool operator==(const PciId&) const = default;
};

// A driver as its library describes it (DPDK's PMD_INFO_STRING).
struct PmdInfo {
    std::string name;            // "net_ixgbe"
    std::string kernel_modules;  // "* igb_uio | vfio-pci"; "": none needed
    std::vector<PciId> ids;
    // Whether the device must be bound to vfio-pci; otherwise it stays with its kernel driver.
    [[nodiscard]] bool wants_vfio() const noexcept {
        return kernel_modules.find("vfio-pci") != std::string::npos;
    }
};

// The drivers described in the bytes of a library. Entries that are not of DPDK's form are skipped. Pure.
[[nodiscard]] std::vector<PmdInfo> pmd_infos(std::string_view library);

// DPDK's folder of driver libraries, "/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0"; "": none is installed.
[[nodiscard]] std::string pmd_folder(const Root& root);

struct PmdLibrary {
    std::string file;  // "librte_net_ixgbe.so.23.0"
    PmdInfo info;
};
// The installed library for a PCI device. Reads all libraries in the folder (31 MB with all of Debian's)
// until one matches.
[[nodiscard]] std::optional<PmdLibrary> find_pmd(const Root& root, const std::string& folder,
                                                 const PciId& id);

// "net_af_packet" -> "af_packet": the name in librte_net_af_packet.so.23.0.
[[nodiscard]] std::string library_of(const std::string& driver);
// The file that DPDK loads for it, "librte_net_af_packet.so.23.0". Its version is that of `folder`. The name
// without a version is a link for developers, which Debian has in libdpdk-dev only.
[[nodiscard]] std::string pmd_file(const std::string& library, const std::string& folder);
// Debian's package of a library: "librte-net-af-packet23". The version is that of `folder`.
[[nodiscard]] std::string package_of(const std::string& library, const std::string& folder);
// The library for a device of a vendor that is known to have one, from the kernel driver that Linux uses for
// it: "ixgbe"; "": unknown.
[[nodiscard]] std::string library_for_kernel_driver(std::string_view kernel_driver);

}  // namespace penstock::host
