// SPDX-License-Identifier: Apache-2.0
// Binds a PCI device to vfio-pci for DPDK, and back to the driver that it had. A file records that driver, so
// that unbind works after a restart of the program. A step that fails is undone.
#pragma once

#include <optional>
#include <string>

#include "control/host/machine.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::host {

inline constexpr const char* kVfioDriver = "vfio-pci";
// One file for each bound device, named after its address; it contains the former driver, or nothing if the
// device had none.
inline constexpr const char* kBindingFolder = "/var/lib/penstock/bound";

// "0000:03:00.0" for "03:00.0". InvalidArgument: not a PCI address.
[[nodiscard]] Result<std::string> full_pci_address(const std::string& text);

// The driver that a device had before bind_device(); nullopt: no record.
[[nodiscard]] std::optional<std::string> recorded_driver(const Root& root, const std::string& address);

// Returns a line about what was done. NotFound: no such device. AlreadyExists: an interface of the device has
// addresses or routes, and binding would cut connections. Unavailable or PermissionDenied: the kernel refused
// a step; the device has its former driver again.
[[nodiscard]] Result<std::string> bind_device(const Machine& machine, const std::string& address);

// Returns the device to the recorded driver, or without a record to the one that the kernel selects. Errors
// as above; after an error the record is kept.
[[nodiscard]] Result<std::string> unbind_device(const Machine& machine, const std::string& address);

}  // namespace penstock::host
