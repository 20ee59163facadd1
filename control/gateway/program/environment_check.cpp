// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/environment_check.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netdb.h>
#include <rte_build_config.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "control/base/host_port.hpp"
#include "control/gateway/rules/blocklist.hpp"
#include "control/gateway/shares/share_snat.hpp"
#include "control/host/core_plan.hpp"
#include "control/host/pmd_library.hpp"
#include "control/shares/plan_text.hpp"
#include "control/tls/material.hpp"
#include "drivers/eal/device_string.hpp"
#include "drivers/eal/host_facts.hpp"

namespace penstock::gateway {
namespace {

namespace fs = std::filesystem;

// The only socket folder that is created if missing. Any other missing folder is treated as a misspelt name.
constexpr const char* kRuntimeFolder = "/run/penstock";

using Lines = std::vector<std::string>;

void check_device(const std::string& text, const MachineFacts& machine, Lines& lines) {
    const auto device = drivers::DeviceString::parse(text);
    if (!device) {
        return;  // the options were rejected before
    }
    std::vector<std::string> pci = device->members();
    std::erase_if(pci, [](const std::string& member) { return !drivers::is_pci_address(member); });
    if (device->is_pci) {
        pci.push_back(device->name);
    } else if (!machine.drivers.empty()) {
        const std::string library = host::library_of(device->driver);
        if (!fs::exists(fs::path(machine.drivers) / host::pmd_file(library, machine.drivers))) {
            lines.push_back("--port: device=" + device->name + ": DPDK's driver " + device->driver +
                            " is not installed: Debian's package " +
                            host::package_of(library, machine.drivers) +
                            " is missing, or the name is misspelt");
        }
    }
    if (const std::string interface = device->kernel_interface();
        !interface.empty() && !machine.has_interface(interface)) {
        lines.push_back("--port: device=" + device->name + ",iface=" + interface +
                        ": there is no such interface (ip -br link lists them)");
    }
    for (const std::string& address : pci) {
        if (!fs::exists(fs::path(machine.pci_devices) / address)) {
            lines.push_back("--port: device=" + address +
                            ": this machine has no such PCI device (lspci -D lists them)");
        }
    }
}

// Whether one of the addresses of `host_and_port` belongs to this machine. A name that cannot be resolved
// now may be resolved at the start.
bool is_local(const std::string& host_and_port) {
    const std::string host = split_host_port(host_and_port).host;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* list = nullptr;
    if (::getaddrinfo(host.c_str(), "0", &hints, &list) != 0) {
        return true;
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
    for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
        const int fd = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
        const bool foreign =
            fd >= 0 && ::bind(fd, each->ai_addr, each->ai_addrlen) != 0 && errno == EADDRNOTAVAIL;
        if (fd >= 0) {
            ::close(fd);
        }
        if (!foreign) {
            return true;
        }
    }
    return false;
}

void check_sockets(const Options& options, Lines& lines) {
    if (!options.socket_group.empty() && ::getgrnam(options.socket_group.c_str()) == nullptr) {
        lines.push_back("--socket-group: this machine has no group " + options.socket_group);
    }
    for (const ListenAddress& address : options.listen) {
        if (!address.is_unix()) {
            if (!is_local(address.text)) {
                lines.push_back("--listen: " + address.text + ": this machine does not have the address");
            }
            continue;
        }
        std::error_code error;
        const fs::path folder = fs::path(address.path).parent_path();
        const auto socket = fs::symlink_status(address.path, error);
        if (fs::exists(socket) && !fs::is_socket(socket)) {
            lines.push_back("--listen: " + address.path + " is a " +
                            (fs::is_directory(socket) ? "folder" : "file") + ", not a socket");
        } else if (!fs::is_directory(folder, error) && folder != kRuntimeFolder) {
            lines.push_back("--listen: " + address.path + ": there is no folder " + folder.string());
        }
    }
}

}  // namespace

MachineFacts this_machine() {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page = ::sysconf(_SC_PAGESIZE);
    MachineFacts facts;
    facts.memory_mb = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) / (1024 * 1024);
    facts.cpus = drivers::allowed_cpus();
    facts.has_interface = [](const std::string& name) { return ::if_nametoindex(name.c_str()) != 0; };
#ifdef RTE_EAL_PMD_PATH
    std::error_code error;
    if (fs::is_directory(RTE_EAL_PMD_PATH, error)) {
        facts.drivers = RTE_EAL_PMD_PATH;
    }
#endif
    return facts;
}

std::vector<std::string> check_environment(const Options& options, const MachineFacts& machine) {
    Lines lines;
    if (options.memory_mb > machine.memory_mb) {
        lines.push_back("--memory-mb: " + std::to_string(options.memory_mb) + " MB are more than the " +
                        std::to_string(machine.memory_mb) + " MB of this machine");
    }
    if (options.hugepage_size != drivers::HugepageSize::Any &&
        !fs::is_directory(fs::path(machine.hugepages) / drivers::pool_name(options.hugepage_size))) {
        lines.push_back(std::string("--hugepage-size: this kernel offers no ") +
                        drivers::text_of_page(options.hugepage_size) + " pages (ls " + machine.hugepages +
                        " lists the sizes)");
    }
    if (const auto cores = host::plan_cores(options.cores, machine.cpus); !cores) {
        lines.push_back(cores.error().what);
    }
    for (const PortOption& port : options.ports) {
        check_device(port.device, machine, lines);
    }
    check_sockets(options, lines);
    std::error_code error;
    if (!options.state_file.empty() && fs::is_directory(options.state_file, error)) {
        lines.push_back("--state-file: " + options.state_file + " is a folder; name a file");
    }
    if (const std::string& folder = options.flow_records.folder;
        !folder.empty() && fs::exists(folder, error) && !fs::is_directory(folder, error)) {
        lines.push_back("--flow-log: " + folder + " is a file; name a folder");
    }
    if (!options.tls_cert.empty()) {
        const auto material = tls::read_material({options.tls_cert, options.tls_key, options.tls_client_ca},
                                                 {.authority = "--tls-client-ca"});
        if (!material) {
            lines.push_back(material.error().what);
        }
    }
    // A start with such a file continues with the saved plan, if there is one.
    if (!options.shares.empty() && options.action == Options::Action::Check) {
        if (const auto plan = shares::read_plan(options.shares); !plan) {
            lines.push_back("--shares: " + plan.error().what);
        } else if (const std::string obstacle =
                       snat_obstacle(*plan, options.snat_addresses, options.ports.size());
                   !obstacle.empty()) {
            lines.push_back("--shares: " + options.shares + ": " + obstacle);
        }
    }
    if (!options.blocklist.empty()) {
        std::vector<IpAddr> own = options.snat_addresses;
        for (const PortOption& port : options.ports) {
            for (const auto& address : port.addresses) {
                own.push_back(address.address);
            }
        }
        if (const auto list = read_blocklist(options.blocklist, own); !list) {
            lines.push_back("--blocklist: " + list.error().what);
        }
    }
    return lines;
}

std::string missing_capabilities(const Options& options) {
    const bool sniffs = std::ranges::any_of(options.ports, [](const PortOption& port) {
        return port.device.starts_with("net_af_packet") || port.device.starts_with("net_af_xdp");
    });
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, 2> data{};
    if (::syscall(SYS_capget, &header, data.data()) != 0) {
        return "";
    }
    const auto lacks = [&](unsigned capability) { return (data[0].effective & (1U << capability)) == 0; };
    std::string names;
    for (const auto& [capability, name, needed] :
         {std::tuple{CAP_NET_ADMIN, "CAP_NET_ADMIN", true}, std::tuple{CAP_NET_RAW, "CAP_NET_RAW", sniffs}}) {
        if (needed && lacks(static_cast<unsigned>(capability))) {
            names += std::string(names.empty() ? "" : ", ") + name;
        }
    }
    return names.empty() ? ""
                         : "this process requires " + names +
                               ": run it as root, or grant it (AmbientCapabilities= of a systemd unit, "
                               "securityContext.capabilities.add of a Pod)";
}

bool uses_bpf(const Options& options) {
    return std::ranges::any_of(options.ports, [](const PortOption& port) {
        return port.device.find("af_xdp") != std::string::npos;
    });
}

std::vector<int> used_capabilities(const Options& options) {
    // Twins, routes, nftables; af_packet; locked memory; TLS files and state files of another user; /healthz
    // on a port below 1024.
    std::vector<int> used = {CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_DAC_READ_SEARCH,
                             CAP_NET_BIND_SERVICE};
    if (!options.socket_group.empty()) {
        used.push_back(CAP_CHOWN);
    }
    if (!options.bfd.empty()) {
        used.push_back(CAP_DAC_OVERRIDE);  // the socket of bfdd is for its own user only
    }
    if (uses_bpf(options)) {
        used.insert(used.end(), {CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN,
                                 CAP_SYS_RESOURCE});  // SYS_ADMIN: kernels before 5.8
    }
    const auto is_pci = [](const PortOption& port) {
        const auto device = drivers::DeviceString::parse(port.device);
        return device && (device->is_pci || std::ranges::any_of(device->members(), drivers::is_pci_address));
    };
    if (std::ranges::any_of(options.ports, is_pci)) {
        used.insert(
            used.end(),
            {CAP_SYS_ADMIN, CAP_SYS_RAWIO});  // physical addresses, and registers of NICs without an IOMMU
    }
    return used;
}

}  // namespace penstock::gateway
