// SPDX-License-Identifier: Apache-2.0
// Path of the lock file that gives a port one owner. Neither af_packet nor vfio-pci refuses a second process
// on every device, and each process would then receive only a part of the frames.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::drivers {

// DIRECTORY/port-<namespace>-<device>.lock. A PCI device belongs to the machine and gets no namespace.
// Characters that a file name cannot contain become _.
[[nodiscard]] std::string port_lock_path(const std::string& directory, uint64_t network_namespace,
                                         const std::string& device);

}  // namespace penstock::drivers
