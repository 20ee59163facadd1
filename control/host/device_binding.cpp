// SPDX-License-Identifier: Apache-2.0
#include "control/host/device_binding.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "control/base/whole_file.hpp"
#include "control/host/pci_device.hpp"
#include "dataplane/base/text.hpp"
#include "drivers/eal/device_string.hpp"

namespace penstock::host {
namespace {

constexpr const char* kProbe = "/sys/bus/pci/drivers_probe";

std::string record_of(const std::string& address) {
    return std::string(kBindingFolder) + "/" + address;
}

// Interfaces of the device that Linux uses: with an IPv4 route or an IPv6 address that is not link-local.
std::vector<std::string> interfaces_in_use(const Root& root, const PciDevice& device) {
    const std::string routes = root.text("/proc/net/route").value_or("");
    const std::string addresses = root.text("/proc/net/if_inet6").value_or("");
    std::vector<std::string> used;
    const auto is_used = [&](const std::string& interface) {
        for (const std::string_view line : split(routes, '\n')) {
            if (split(line, '\t').front() == interface) {
                return true;
            }
        }
        for (const std::string_view line : split(addresses, '\n')) {
            if (!line.starts_with("fe80") && line.substr(line.rfind(' ') + 1) == interface) {
                return true;
            }
        }
        return false;
    };
    std::ranges::copy_if(device.interfaces, std::back_inserter(used), is_used);
    return used;
}

Status detach(const Machine& machine, const PciDevice& device) {
    return device.kernel_driver.empty()
               ? Status()
               : machine.write(pci_folder(device.address) + "/driver/unbind", device.address);
}

// Makes `driver` the only one that may take the device, and attaches it. "": the kernel selects.
Status attach(const Machine& machine, const std::string& address, const std::string& driver) {
    PENSTOCK_TRY_STATUS(machine.write(pci_folder(address) + "/driver_override", driver + "\n"));
    PENSTOCK_TRY_STATUS(machine.write(kProbe, address));
    const auto now = read_pci_device(machine.root, address);
    if (!now || (!driver.empty() && now->kernel_driver != driver)) {
        return fail(Errc::Unavailable, "driver " + driver + " did not accept the device; see dmesg");
    }
    return {};
}

std::string driver_text(const std::string& driver) {
    return driver.empty() ? "no driver" : driver;
}

// The device as it was before a failed step. Best effort: the error of the step is reported.
void restore(const Machine& machine, const PciDevice& former) {
    if (const auto now = read_pci_device(machine.root, former.address);
        now && now->kernel_driver != former.kernel_driver) {
        static_cast<void>(detach(machine, *now));
    }
    static_cast<void>(machine.write(pci_folder(former.address) + "/driver_override", "\n"));
    if (!former.kernel_driver.empty()) {
        static_cast<void>(machine.write(kProbe, former.address));
    }
}

std::string rest_of_group(const PciDevice& device) {
    std::string others;
    for (const std::string& member : device.group_members) {
        others += (others.empty() ? "" : ", ") + member;
    }
    return others.empty() ? ""
                          : "; its IOMMU group " + device.iommu_group + " also contains " + others +
                                ", which must be bound as well unless they are bridges";
}

}  // namespace

Result<std::string> full_pci_address(const std::string& text) {
    if (!drivers::is_pci_address(text)) {
        return fail(Errc::InvalidArgument, "\"" + text + "\" is not a PCI address like 0000:03:00.0");
    }
    std::string address = text.size() == 7 ? "0000:" + text : text;
    std::ranges::transform(address, address.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    });
    return address;
}

std::optional<std::string> recorded_driver(const Root& root, const std::string& address) {
    return root.text(record_of(address));
}

Result<std::string> bind_device(const Machine& machine, const std::string& address) {
    const auto device = read_pci_device(machine.root, address);
    if (!device) {
        return fail(Errc::NotFound, address + ": this machine has no such PCI device (lspci -D lists them)");
    }
    if (device->kernel_driver == kVfioDriver) {
        return address + " is already bound to " + kVfioDriver;
    }
    if (const auto used = interfaces_in_use(machine.root, *device); !used.empty()) {
        return fail(Errc::AlreadyExists,
                    address + ": its interface " + used.front() +
                        " has addresses or routes; remove them first (ip address flush dev " + used.front() +
                        ")");
    }
    if (!machine.root.exists(std::string("/sys/bus/pci/drivers/") + kVfioDriver)) {
        PENSTOCK_TRY_STATUS_IN(address, machine.load_module(kVfioDriver));
    }
    // The record precedes the change, so that an interrupted bind can be undone.
    PENSTOCK_TRY_STATUS_IN(address,
                           replace_file(machine.root.at(record_of(address)).string(), device->kernel_driver));
    Status done = detach(machine, *device);
    if (done) {
        done = attach(machine, address, kVfioDriver);
    }
    if (!done) {
        restore(machine, *device);
        std::error_code ignored;
        std::filesystem::remove(machine.root.at(record_of(address)), ignored);
        return in_context(address, std::move(done).error());
    }
    return address + " is bound to " + kVfioDriver + "; formerly " + driver_text(device->kernel_driver) +
           rest_of_group(*device);
}

Result<std::string> unbind_device(const Machine& machine, const std::string& address) {
    const auto device = read_pci_device(machine.root, address);
    if (!device) {
        return fail(Errc::NotFound, address + ": this machine has no such PCI device (lspci -D lists them)");
    }
    const auto former = recorded_driver(machine.root, address);
    if (device->kernel_driver == kVfioDriver) {
        Status done = detach(machine, *device);
        if (done) {
            done = attach(machine, address, former.value_or(""));
        }
        if (done && former && !former->empty()) {
            // The override would keep other drivers from the device.
            done = machine.write(pci_folder(address) + "/driver_override", "\n");
        }
        if (!done) {
            if (const auto now = read_pci_device(machine.root, address); now && now->kernel_driver.empty()) {
                static_cast<void>(attach(machine, address, kVfioDriver));
            }
            return in_context(address, std::move(done).error());
        }
    } else if (!former) {
        return address + " is not bound to " + kVfioDriver + "; its driver is " +
               driver_text(device->kernel_driver);
    }
    // After a reboot the device has its own driver again, and only the record is left.
    std::error_code ignored;
    std::filesystem::remove(machine.root.at(record_of(address)), ignored);
    const auto now = read_pci_device(machine.root, address);
    return address + " is bound to " + driver_text(now ? now->kernel_driver : "");
}

}  // namespace penstock::host
