// SPDX-License-Identifier: Apache-2.0
// What a configuration of penstockd needs of the machine, read from its INI file: devices, CPUs, memory,
// addresses, certificates. Options that need nothing are not read. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/host/core_plan.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "drivers/eal/device_string.hpp"
#include "drivers/eal/hugepage_size.hpp"

namespace penstock::host {

struct Needs {
    struct Port {
        drivers::DeviceString device;
        std::string twin;
    };
    // A TCP address that penstockd listens on.
    struct Listener {
        std::string option;             // "--metrics-listen"
        std::string text;               // "127.0.0.1:9105"
        std::optional<IpAddr> address;  // empty: a host name
        L4Port port = 0;
    };

    std::vector<Port> ports;
    CoreWishes cores;
    uint64_t memory_mb = 512;
    bool no_huge = false;
    drivers::HugepageSize hugepage_size = drivers::HugepageSize::Any;
    std::vector<Listener> listeners;
    // The first unix socket that penstockd listens on; "": none.
    std::string socket{"/run/penstock/penstockd.sock"};
    std::string tls_cert, tls_key, tls_client_ca;  // files; "": none
    bool announces_routes = false;                 // VIPs are kernel routes

    // PCI addresses of all ports and of the members of bonds.
    [[nodiscard]] std::vector<std::string> pci_devices() const;
    // Linux interfaces that ports take their frames from.
    [[nodiscard]] std::vector<std::string> interfaces() const;
};

struct NeedsRead {
    Needs needs;
    // Values that penstockd would refuse, "--memory-mb: ..."; the needs have the default in their place.
    std::vector<std::string> mistakes;
};

// The needs of the options in `ini`. An option that is absent has penstockd's default.
[[nodiscard]] NeedsRead read_needs(const std::string& ini);

}  // namespace penstock::host
