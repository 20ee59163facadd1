// Path of the lock file that gives a port one owner. Neither af_packet nor vfio-pci refuses a second process on every device, and both
// processes would then receive a part of the frames.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::drivers {

// DIRECTORY/port-<namespace>-<device>.lock. A PCI device is the machine's and gets no namespace. What cannot stand in a file name becomes
// _.
[[nodiscard]] std::string port_lock_path(const std::string& directory, uint64_t network_namespace,
                                         const std::string& device);

}  // namespace penstock::drivers
