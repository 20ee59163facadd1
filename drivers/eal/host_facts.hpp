// What the gateway must know of the Linux that it runs on, read from /proc of the namespace of the calling thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::drivers {

// net.ipv4.ip_local_port_range: the ports that the host's own sockets take, which SNAT leaves out on an address that it shares with the
// host (IPv6 sockets use the same range). Corrupt where the kernel's text cannot be read as two ports.
[[nodiscard]] Result<nat::PortRange> host_ephemeral_range();
// The same from the text of the sysctl; pure.
[[nodiscard]] Result<nat::PortRange> parse_port_range(std::string_view text);

// CPUs on which this thread may run, ascending: the machine's, less what cpusets and taskset took away.
[[nodiscard]] std::vector<unsigned> allowed_cpus();

// Every IP address of the host's interfaces in the network namespace of the calling thread; empty where the kernel does not say.
[[nodiscard]] std::vector<IpAddr> host_addresses();

// The inode of the network namespace of the calling thread: two namespaces may both have a "veth0", and these are different ports.
[[nodiscard]] Result<uint64_t> network_namespace();

}  // namespace penstock::drivers
