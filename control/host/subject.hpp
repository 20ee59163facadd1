// SPDX-License-Identifier: Apache-2.0
// What all checks read: the machine, the needs of the configuration, and facts that several checks use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/host/core_plan.hpp"
#include "control/host/finding.hpp"
#include "control/host/machine.hpp"
#include "control/host/needs.hpp"
#include "control/host/pci_device.hpp"
#include "control/host/socket_table.hpp"

namespace penstock::host {

struct Subject {
    const Machine& machine;
    const Needs& needs;
    std::vector<PciDevice> devices;         // those of the needs that exist
    std::optional<Result<CorePlan>> cores;  // empty: the allowed CPUs cannot be read
    // Running now: the one that listens on the socket of the needs, otherwise one of this network namespace.
    std::optional<Process> penstockd;
    bool has_socket = false;  // it is the former
    std::string config;       // path of the INI file; "": none
    bool has_iommu = false;

    [[nodiscard]] const Root& root() const noexcept { return machine.root; }
    // CPUs of the workers, ascending, each once; empty if they cannot be planned.
    [[nodiscard]] std::vector<unsigned> worker_cpus() const;
};

// A NUMA node of the machine.
struct NumaNode {
    unsigned id = 0;
    std::string folder;          // "/sys/devices/system/node/node0"
    std::vector<unsigned> cpus;  // ascending
};
// Empty: the kernel does not report them.
[[nodiscard]] std::vector<NumaNode> numa_nodes(const Root& root);

using Findings = std::vector<Finding>;
void check_configuration(const Subject& subject, const std::string& config,
                         const std::vector<std::string>& mistakes, Findings& findings);
void check_hugepages(const Subject& subject, Findings& findings);
void check_iommu(const Subject& subject, Findings& findings);
void check_devices(const Subject& subject, Findings& findings);
void check_drivers(const Subject& subject, Findings& findings);
void check_bindings(const Subject& subject, Findings& findings);
void check_numa(const Subject& subject, Findings& findings);
void check_cpus(const Subject& subject, Findings& findings);
void check_isolation(const Subject& subject, Findings& findings);
void check_interrupts(const Subject& subject, Findings& findings);
void check_governors(const Subject& subject, Findings& findings);
void check_interfaces(const Subject& subject, Findings& findings);
void check_offloads(const Subject& subject, Findings& findings);
void check_reverse_path(const Subject& subject, Findings& findings);
void check_rfc1337(const Subject& subject, Findings& findings);
void check_announcement(const Subject& subject, Findings& findings);
void check_clock(const Subject& subject, Findings& findings);
void check_certificates(const Subject& subject, Findings& findings);
void check_file_limit(const Subject& subject, Findings& findings);
void check_listeners(const Subject& subject, Findings& findings);

}  // namespace penstock::host
