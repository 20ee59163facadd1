// What this machine must have for a configuration to start: memory, CPUs, PCI devices, DPDK's drivers, folders of sockets, TLS files, the
// blocklist. Reads files and folders; touches neither devices nor the network.
#pragma once

#include <string>
#include <vector>

#include "control/gateway/options/options.hpp"

namespace penstock::gateway {

// Places that the check reads, for tests.
struct MachineFacts {
    std::string pci_devices = "/sys/bus/pci/devices";
    std::string drivers;  // DPDK's folder of driver libraries; "" where this build has none
    uint64_t memory_mb = 0;
    std::vector<unsigned> cpus;  // that this process may use
};
[[nodiscard]] MachineFacts this_machine();

// One line for each mistake, with the option's name and what to do; none: a start will not fail for these reasons.
[[nodiscard]] std::vector<std::string> check_environment(const Options& options, const MachineFacts& machine);

// Names of the capabilities that the ports need and this process lacks, as one line; "": none. For a start only: a configuration may be
// checked by another user than the one that runs it.
[[nodiscard]] std::string missing_capabilities(const Options& options);

// The capabilities that a gateway with these options uses: in the sandbox it keeps them and no others.
[[nodiscard]] std::vector<int> used_capabilities(const Options& options);
// Ports of net_af_xdp load a program into the kernel.
[[nodiscard]] bool uses_bpf(const Options& options);

}  // namespace penstock::gateway
