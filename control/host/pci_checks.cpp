// SPDX-License-Identifier: Apache-2.0
// Checks of the devices of ports: IOMMU, existence, DPDK's driver library, kernel driver, NUMA node.
#include <algorithm>
#include <set>

#include "control/host/cpu_list.hpp"
#include "control/host/device_binding.hpp"
#include "control/host/subject.hpp"

namespace penstock::host {
namespace {

constexpr const char* kNoIommuFile = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
constexpr const char* kPmdFolders = "/usr/lib/*/dpdk/pmds-*";

bool is_noiommu_mode(const Root& root) {
    const auto text = root.text(kNoIommuFile);
    return text == "Y" || text == "1";
}

// The driver that Linux would use: that of the record if the device is bound to vfio-pci.
std::string own_driver(const Root& root, const PciDevice& device) {
    return device.kernel_driver == kVfioDriver ? recorded_driver(root, device.address).value_or("")
                                               : device.kernel_driver;
}

void check_virtual_driver(const Root& root, const std::string& folder, const drivers::DeviceString& device,
                          Check& check) {
    const std::string library = library_of(device.driver);
    if (const std::string file = pmd_file(library, folder); root.exists(folder + "/" + file)) {
        check.ok(device.name, file + " is installed");
    } else {
        check
            .fault(device.name,
                   "DPDK's driver " + device.driver + " is not installed, or the name is misspelt")
            .mend("apt-get install " + package_of(library, folder));
    }
}

void check_pci_driver(const Root& root, const std::string& folder, const PciDevice& device, Check& check) {
    const std::string id = pci_id_text(device.id);
    if (const auto pmd = find_pmd(root, folder, device.id)) {
        check.ok(device.address, id + ": " + pmd->info.name + " in " + pmd->file);
        return;
    }
    const std::string library = library_for_kernel_driver(own_driver(root, device));
    check.fault(device.address, "no installed DPDK driver supports the device " + id);
    if (!library.empty()) {
        check.mend("apt-get install " + package_of(library, folder));
    } else {
        check.mend("lspci -nn -s " + device.address);
    }
}

void check_vfio_binding(const PciDevice& device, Check& check) {
    if (device.kernel_driver == "igb_uio" || device.kernel_driver == "uio_pci_generic") {
        check.warning(device.address,
                      "bound to " + device.kernel_driver +
                          ", which gives the device access to all memory; vfio-pci is preferred");
        check.mend("penstockctl doctor bind " + device.address);
    } else if (device.kernel_driver != kVfioDriver) {
        check
            .fault(device.address, (device.kernel_driver.empty() ? std::string("bound to no driver")
                                                                 : "bound to " + device.kernel_driver) +
                                       ", not to vfio-pci")
            .mend("penstockctl doctor bind " + device.address);
    } else {
        check.ok(device.address, "bound to vfio-pci");
    }
}

// A group is usable only if none of its devices belongs to a kernel driver. Bridges are exempt.
void check_group(const Root& root, const PciDevice& device, Check& check) {
    static const std::set<std::string> kHarmless = {"", "pcieport", "pci-stub", kVfioDriver};
    for (const std::string& member : device.group_members) {
        const auto other = read_pci_device(root, member);
        if (other && !kHarmless.contains(other->kernel_driver)) {
            check
                .fault(device.address, "its IOMMU group " + device.iommu_group + " contains " + member +
                                           ", which is bound to " + other->kernel_driver)
                .mend("penstockctl doctor bind " + member);
        }
    }
}

std::string node_list(const std::set<unsigned>& nodes) {
    return cpu_list_text({nodes.begin(), nodes.end()});
}

}  // namespace

void check_iommu(const Subject& subject, Findings& findings) {
    Check check(findings, "iommu");
    if (subject.needs.pci_devices().empty()) {
        check.ok("", "not needed: no port is a PCI device");
    } else if (subject.has_iommu) {
        check.ok("", "on");
    } else if (is_noiommu_mode(subject.root())) {
        check.warning("",
                      "off; vfio-pci works in its unsafe mode, in which a device can write to all memory");
        check.mend(
            "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&intel_iommu=on iommu=pt /' /etc/default/grub && update-grub "
            "&& "
            "reboot");
    } else if (!subject.root().exists("/sys/kernel")) {
        check.unknown("", "/sys/kernel/iommu_groups");
    } else {
        check.fault(
            "",
            "off, so vfio-pci accepts no device; a virtual machine without IOMMU needs the second command");
        check.mend(
            "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&intel_iommu=on iommu=pt /' /etc/default/grub && update-grub "
            "&& "
            "reboot");
        check.mend("modprobe vfio && echo 1 >" + std::string(kNoIommuFile));
    }
}

void check_devices(const Subject& subject, Findings& findings) {
    Check check(findings, "device");
    const auto wanted = subject.needs.pci_devices();
    if (wanted.empty()) {
        check.ok("", "no port is a PCI device");
    }
    if (!wanted.empty() && !subject.root().exists("/sys/bus/pci/devices")) {
        check.unknown("", "/sys/bus/pci/devices");
        return;
    }
    for (const std::string& address : wanted) {
        const auto device = std::ranges::find(subject.devices, address, &PciDevice::address);
        if (device == subject.devices.end()) {
            check.fault(address, "this machine has no such PCI device").mend("lspci -D -nn");
        } else {
            check.ok(address, pci_id_text(device->id));
        }
    }
}

void check_drivers(const Subject& subject, Findings& findings) {
    Check check(findings, "driver");
    if (subject.needs.ports.empty()) {
        check.ok("", "no port is configured");
        return;
    }
    const std::string folder = pmd_folder(subject.root());
    if (folder.empty()) {
        check.unknown("", kPmdFolders);
        return;
    }
    for (const Needs::Port& port : subject.needs.ports) {
        if (!port.device.is_pci) {
            check_virtual_driver(subject.root(), folder, port.device, check);
        }
    }
    for (const PciDevice& device : subject.devices) {
        check_pci_driver(subject.root(), folder, device, check);
    }
}

void check_bindings(const Subject& subject, Findings& findings) {
    Check check(findings, "binding");
    if (subject.devices.empty()) {
        check.ok("",
                 subject.needs.pci_devices().empty() ? "no port is a PCI device" : "no device is present");
    }
    const std::string folder = pmd_folder(subject.root());
    for (const PciDevice& device : subject.devices) {
        const auto pmd = folder.empty() ? std::nullopt : find_pmd(subject.root(), folder, device.id);
        if (pmd && !pmd->info.wants_vfio()) {
            // The device is shared with its kernel driver.
            if (device.kernel_driver.empty() || device.kernel_driver == kVfioDriver) {
                check
                    .fault(device.address, pmd->info.name + " needs the device at its kernel driver (" +
                                               pmd->info.kernel_modules + ")")
                    .mend("penstockctl doctor unbind " + device.address);
            } else {
                check.ok(device.address, "shared with " + device.kernel_driver);
            }
            continue;
        }
        check_vfio_binding(device, check);
        check_group(subject.root(), device, check);
    }
}

void check_numa(const Subject& subject, Findings& findings) {
    Check check(findings, "numa");
    const auto nodes = numa_nodes(subject.root());
    if (nodes.empty()) {
        check.unknown("", "/sys/devices/system/node");
        return;
    }
    if (nodes.size() == 1) {
        check.ok("", "one node");
        return;
    }
    const auto workers = subject.worker_cpus();
    std::set<unsigned> worker_nodes;
    for (const NumaNode& node : nodes) {
        if (std::ranges::any_of(node.cpus,
                                [&](unsigned cpu) { return std::ranges::count(workers, cpu) > 0; })) {
            worker_nodes.insert(node.id);
        }
    }
    const auto compare = [&](const std::string& object, std::optional<unsigned> node) {
        if (!node) {
            check.unknown(object, "the NUMA node of the device");
        } else if (worker_nodes == std::set{*node}) {
            check.ok(object, "on node " + std::to_string(*node) + ", as all workers");
        } else {
            const auto own = std::ranges::find(nodes, *node, &NumaNode::id);
            check.warning(object, "on node " + std::to_string(*node) + ", workers on node " +
                                      (worker_nodes.empty() ? "?" : node_list(worker_nodes)) +
                                      ": every packet crosses nodes");
            check.mend("sed -i 's/^worker-cores.*/worker-cores = " +
                       (own == nodes.end() ? std::string("CPUS") : cpu_list_text(own->cpus)) +
                       "/' /etc/penstock/penstockd.ini");
        }
    };
    for (const PciDevice& device : subject.devices) {
        compare(device.address, device.numa_node);
    }
    for (const std::string& interface : subject.needs.interfaces()) {
        const std::string device = "/sys/class/net/" + interface + "/device";
        if (subject.root().exists(device)) {
            const auto node = subject.root().number(device + "/numa_node");
            compare(interface, node ? std::optional(static_cast<unsigned>(*node)) : std::nullopt);
        }
    }
    if (subject.devices.empty() && worker_nodes.size() > 1) {
        check.warning("", "workers on nodes " + node_list(worker_nodes) +
                              "; each uses memory of its own node only "
                              "if the ports are on both");
        check.mend("lscpu -e=CPU,NODE,CORE");
    } else if (subject.devices.empty()) {
        check.ok("", "workers on node " + (worker_nodes.empty() ? "?" : node_list(worker_nodes)));
    }
}

}  // namespace penstock::host
