#include "control/gateway/snat_shares.hpp"

#include <algorithm>
#include <vector>

#include "dataplane/nat/reply_owner.hpp"

namespace penstock::gateway {
namespace {

std::string text_of(nat::PortRange range) {
    return std::to_string(range.first) + "-" + std::to_string(range.last);
}

}  // namespace

Result<std::string> check_snat_shares(nat::PortRange ports, nat::PortRange host_ephemeral, unsigned workers) {
    const nat::ReplyOwner owner{.workers = workers, .secret = {}};
    std::vector<unsigned> alone(workers);   // ports of each worker on an address that is ours alone
    std::vector<unsigned> shared(workers);  // on one that the host uses too
    for (unsigned port = ports.first; port <= ports.last; ++port) {
        const auto worker = owner.of_snat_port(static_cast<L4Port>(port)).value;
        ++alone[worker];
        shared[worker] += port < host_ephemeral.first || port > host_ephemeral.last ? 1 : 0;
    }
    const auto first_without = [](const std::vector<unsigned>& counts) { return std::ranges::find(counts, 0U) - counts.begin(); };
    if (const auto worker = first_without(alone); worker < static_cast<std::ptrdiff_t>(workers)) {
        return fail(Errc::InvalidArgument, "--snat-ports: " + text_of(ports) + " leaves worker " + std::to_string(worker) +
                                               " without a port; workers take them in blocks of " + std::to_string(nat::kPortsPerBlock) +
                                               ", so " + std::to_string(workers) + " workers need " +
                                               std::to_string(workers * nat::kPortsPerBlock) + " in a row");
    }
    if (const auto worker = first_without(shared); worker < static_cast<std::ptrdiff_t>(workers)) {
        return "--snat-ports: " + text_of(ports) + " leaves worker " + std::to_string(worker) +
               " without a port on addresses that the host uses too, because Linux takes " + text_of(host_ephemeral) +
               " there (net.ipv4.ip_local_port_range); new flows that need one are dropped";
    }
    return "";
}

}  // namespace penstock::gateway
