// SPDX-License-Identifier: Apache-2.0
// Checks the machine resources that a configuration needs to start: memory, CPUs, PCI devices, DPDK drivers,
// sockets and their group, TLS files, the blocklist. Reads files and folders, and resolves names of
// `--listen`; accesses no devices.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/gateway/options/options.hpp"

namespace penstock::gateway {

// The locations and values that the check reads; tests replace them.
struct MachineFacts {
    std::string pci_devices = "/sys/bus/pci/devices";
    std::string drivers;  // DPDK's folder of driver libraries; "" if this build has none
    std::string hugepages = "/sys/kernel/mm/hugepages";
    uint64_t memory_mb = 0;
    std::vector<unsigned> cpus;  // that this process may use
    std::function<bool(const std::string& name)> has_interface;
};
[[nodiscard]] MachineFacts this_machine();

// One line for each error, with the option's name and what to do. None: a start does not fail for these
// reasons.
[[nodiscard]] std::vector<std::string> check_environment(const Options& options, const MachineFacts& machine);

// Names of the capabilities that the ports need and this process does not have, as one line; "": none. Only
// for a start: a configuration may be checked by another user than the one that runs it.
[[nodiscard]] std::string missing_capabilities(const Options& options);

// The capabilities that a gateway with these options uses. In the sandbox it keeps only these.
[[nodiscard]] std::vector<int> used_capabilities(const Options& options);
// Whether the ports load a program into the kernel (net_af_xdp).
[[nodiscard]] bool uses_bpf(const Options& options);

}  // namespace penstock::gateway
