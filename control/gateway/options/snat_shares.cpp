// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/snat_shares.hpp"

#include <algorithm>
#include <vector>

#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/nat/toeplitz.hpp"

namespace penstock::gateway {
namespace {

std::string range_text(nat::PortRange range) {
    return std::to_string(range.first) + "-" + std::to_string(range.last);
}

}  // namespace

Result<std::string> check_snat_shares(nat::PortRange ports, nat::PortRange host_ephemeral, unsigned workers) {
    const nat::ReplyOwner owner{.workers = workers, .secret = {}};
    std::vector<unsigned> alone(workers);   // ports of each worker on an address used only by the gateway
    std::vector<unsigned> shared(workers);  // on an address that the host uses too
    for (unsigned port = ports.first; port <= ports.last; ++port) {
        const auto worker = owner.of_snat_port(static_cast<L4Port>(port)).value;
        ++alone[worker];
        shared[worker] += port < host_ephemeral.first || port > host_ephemeral.last ? 1 : 0;
    }
    const auto first_without = [](const std::vector<unsigned>& counts) {
        return std::ranges::find(counts, 0U) - counts.begin();
    };
    if (const auto worker = first_without(alone); worker < static_cast<std::ptrdiff_t>(workers)) {
        return fail(Errc::InvalidArgument,
                    "--snat-ports: " + range_text(ports) + " leaves worker " + std::to_string(worker) +
                        " without a port; workers take ports in blocks of " +
                        std::to_string(nat::kPortsPerBlock) + ", so " + std::to_string(workers) +
                        " workers need " + std::to_string(workers * nat::kPortsPerBlock) +
                        " consecutive ports");
    }
    if (const auto worker = first_without(shared); worker < static_cast<std::ptrdiff_t>(workers)) {
        return "--snat-ports: " + range_text(ports) + " leaves worker " + std::to_string(worker) +
               " without a port on addresses that the host uses too, because Linux uses " +
               range_text(host_ephemeral) +
               " there (net.ipv4.ip_local_port_range); new flows that need such a port are dropped";
    }
    return "";
}

std::string remark_on_heirs_ports(nat::PortRange ports, unsigned workers) {
    const nat::ReplyOwner owner{.workers = workers, .secret = {}};
    std::vector<bool> has_port(workers);
    for (unsigned port = ports.first; port <= ports.last; ++port) {
        if ((nat::ports_in_block(nat::PortPart::Heir) >> port % nat::kPortsPerBlock & 1) != 0) {
            has_port[owner.of_snat_port(static_cast<L4Port>(port)).value] = true;
        }
    }
    const auto without = std::ranges::find(has_port, false) - has_port.begin();
    return without == static_cast<std::ptrdiff_t>(workers)
               ? ""
               : "--snat-ports: " + range_text(ports) + " leaves worker " + std::to_string(without) +
                     " without a port as the heir of a share, because heirs use every eighth port; new flows "
                     "that need such a port are dropped";
}

std::string remark_on_hashed_shares(const nat::ReplyHash& hash, NicPortId port, nat::PortRange ports,
                                    unsigned workers, nat::PortPart part) {
    const uint64_t in_block = nat::ports_in_block(part);
    const auto entries = static_cast<uint32_t>(hash.worker_of.size());
    const nat::Toeplitz toeplitz(hash.key);
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        if (!hash.covers(family, Protocol::Tcp) && !hash.covers(family, Protocol::Udp)) {
            continue;
        }
        // The values that the ports add to the table index. The endpoint determines the value that they are
        // added to.
        std::vector<bool> is_added(entries);
        for (unsigned number = ports.first; number <= ports.last; ++number) {
            if ((in_block >> number % nat::kPortsPerBlock & 1) != 0) {
                is_added[toeplitz.of_destination_port(family, static_cast<L4Port>(number)) % entries] = true;
            }
        }
        for (uint32_t base = 0; base < entries; ++base) {
            std::vector<bool> has_port(workers);
            unsigned without = workers;
            for (uint32_t added = 0; added < entries && without > 0; ++added) {
                const uint8_t worker = hash.worker_of[base ^ added].value;
                if (is_added[added] && !has_port[worker]) {
                    has_port[worker] = true;
                    --without;
                }
            }
            if (without > 0) {
                return "--snat-ports: " + range_text(ports) + " leaves worker " +
                       std::to_string(std::ranges::find(has_port, false) - has_port.begin()) +
                       " without a port towards some endpoints over " + to_string(family) +
                       ", because RSS of port " + std::to_string(port.value) +
                       " delivers no reply to these ports to that worker" +
                       (part == nat::PortPart::Heir ? "; as the heir of a share it uses every eighth port"
                                                    : "") +
                       "; new flows that need such a port are dropped";
            }
        }
    }
    return "";
}

}  // namespace penstock::gateway
