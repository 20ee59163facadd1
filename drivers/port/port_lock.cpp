// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/port_lock.hpp"

#include <cctype>

namespace penstock::drivers {

std::string port_lock_path(const std::string& directory, uint64_t network_namespace,
                           const std::string& device) {
    std::string name = device;
    for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') {
            c = '_';
        }
    }
    // A PCI address contains colons, an interface name cannot.
    const bool is_pci = device.find(':') != std::string::npos;
    return directory + "/port-" + (is_pci ? "pci" : std::to_string(network_namespace)) + "-" + name + ".lock";
}

}  // namespace penstock::drivers
