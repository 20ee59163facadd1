// SPDX-License-Identifier: Apache-2.0
#include "control/host/doctor.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "control/host/cpu_list.hpp"
#include "control/host/subject.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

constexpr CheckName kChecks[] = {
    {"configuration", "The options of the INI file are valid (penstockd --check-config)"},
    {"hugepages", "Free hugepages on each NUMA node, for --memory-mb and --hugepage-size"},
    {"iommu", "An IOMMU for the PCI devices"},
    {"device", "The PCI devices exist"},
    {"driver", "DPDK's driver library for each device is installed"},
    {"binding", "Each PCI device is bound to the kernel driver that DPDK needs"},
    {"numa", "Devices and workers are on one NUMA node"},
    {"cpus", "The CPUs of the workers exist, are allowed, and are not shared"},
    {"isolation", "Other programs keep off the workers' CPUs"},
    {"irq-affinity", "Interrupts keep off the workers' CPUs"},
    {"governor", "The workers' CPUs run at full frequency"},
    {"interface", "Interfaces below ports exist, are up and have a link; names of twins are free"},
    {"offloads", "Offloads of veth interfaces are off at both ends"},
    {"rp-filter", "The kernel accepts packets that arrive by another twin than that of the route back"},
    {"tcp-rfc1337", "The kernel lets a new connection use the port of a finished one"},
    {"announcement", "A routing daemon exports the routes of VIPs"},
    {"clock", "The clock is synchronised"},
    {"certificates", "The TLS files are valid, and expire in more than 14 days"},
    {"file-limit", "penstockd may open enough files"},
    {"ports", "The TCP ports that penstockd listens on are free"},
};

using CheckFunction = void (*)(const Subject&, Findings&);
constexpr CheckFunction kFunctions[] = {
    check_hugepages,  check_iommu,        check_devices,      check_drivers,    check_bindings,
    check_numa,       check_cpus,         check_isolation,    check_interrupts, check_governors,
    check_interfaces, check_offloads,     check_reverse_path, check_rfc1337,    check_announcement,
    check_clock,      check_certificates, check_file_limit,   check_listeners};
static_assert(std::size(kFunctions) + 1 == std::size(kChecks));  // the first one has more arguments

std::optional<Result<CorePlan>> plan_of(const Root& root, const CoreWishes& wishes) {
    const std::string status = root.text("/proc/self/status").value_or("");
    for (const std::string_view line : split(status, '\n')) {
        constexpr std::string_view kField = "Cpus_allowed_list:";
        if (line.starts_with(kField)) {
            if (const auto allowed = parse_cpu_list(line.substr(kField.size())); allowed) {
                return plan_cores(wishes, *allowed);
            }
        }
    }
    return std::nullopt;
}

// The process that listens on the gateway's socket.
std::optional<Process> owner_of_gateway_socket(const Root& root, const Needs& needs) {
    const auto inode = needs.socket.empty() ? std::nullopt : unix_socket_at(root, needs.socket);
    return inode ? owner_of_socket(root, *inode) : std::nullopt;
}

// A penstockd of this network namespace; others have ports and twins of their own.
std::optional<Process> any_gateway(const Root& root) {
    const auto own = root.link_name("/proc/self/ns/net");
    return find_process(root, "penstockd", [&](const std::string& pid) {
        const auto its = root.link_name("/proc/" + pid + "/ns/net");
        return !own || !its || own == its;
    });
}

}  // namespace

std::span<const CheckName> all_checks() {
    return kChecks;
}

std::vector<unsigned> Subject::worker_cpus() const {
    if (!cores || !*cores) {
        return {};
    }
    const std::vector<unsigned>& planned = (*cores)->worker_cpus;
    const std::set<unsigned> distinct(planned.begin(), planned.end());
    return {distinct.begin(), distinct.end()};
}

std::vector<NumaNode> numa_nodes(const Root& root) {
    constexpr std::string_view kFolder = "/sys/devices/system/node", kPrefix = "node";
    std::vector<NumaNode> nodes;
    for (const std::string& name : root.names(kFolder)) {
        const auto id = name.starts_with(kPrefix)
                            ? whole_number<unsigned>(std::string_view(name).substr(kPrefix.size()))
                            : std::nullopt;
        if (id) {
            const std::string folder = std::string(kFolder) + "/" + name;
            nodes.push_back({*id, folder,
                             parse_cpu_list(root.text(folder + "/cpulist").value_or(""))
                                 .value_or(std::vector<unsigned>())});
        }
    }
    std::ranges::sort(nodes, {}, &NumaNode::id);
    return nodes;
}

std::vector<Finding> examine(const Machine& machine, const std::string& config) {
    const auto ini = config.empty() ? std::nullopt : machine.root.text(config);
    const NeedsRead read = ini ? read_needs(*ini) : NeedsRead{};
    const auto owner = owner_of_gateway_socket(machine.root, read.needs);
    Subject subject{.machine = machine,
                    .needs = read.needs,
                    .devices = {},
                    .cores = plan_of(machine.root, read.needs.cores),
                    .penstockd = owner ? owner : any_gateway(machine.root),
                    .has_socket = owner.has_value(),
                    .config = config,
                    .has_iommu = !machine.root.names("/sys/kernel/iommu_groups").empty()};
    for (const std::string& address : read.needs.pci_devices()) {
        if (auto device = read_pci_device(machine.root, address)) {
            subject.devices.push_back(std::move(*device));
        }
    }
    Findings findings;
    check_configuration(subject, config, read.mistakes, findings);
    for (const CheckFunction check : kFunctions) {
        check(subject, findings);
    }
    return findings;
}

}  // namespace penstock::host
