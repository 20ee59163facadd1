// SPDX-License-Identifier: Apache-2.0
// Properties of the host's Linux that the gateway needs, read from /proc in the namespace of the calling
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::drivers {

// net.ipv4.ip_local_port_range: the ports of the host's own sockets (IPv6 sockets use the same range). SNAT
// leaves them out on an address that it shares with the host. Corrupt: the kernel's text does not contain two
// ports.
[[nodiscard]] Result<nat::PortRange> host_ephemeral_range();
// The same, parsed from the text of the sysctl; pure.
[[nodiscard]] Result<nat::PortRange> parse_port_range(std::string_view text);

// CPUs on which this thread may run, ascending: those of the machine, without those that cpusets and taskset
// exclude.
[[nodiscard]] std::vector<unsigned> allowed_cpus();

// All IP addresses of the host's interfaces in the network namespace of the calling thread; empty if the
// kernel does not report them.
[[nodiscard]] std::vector<IpAddr> host_addresses();

// The inode of the network namespace of the calling thread. It distinguishes interfaces of the same name: two
// namespaces may both have a "veth0".
[[nodiscard]] Result<uint64_t> network_namespace();

}  // namespace penstock::drivers
