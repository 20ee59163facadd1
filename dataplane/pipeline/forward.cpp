#include "dataplane/pipeline/forward.hpp"

#include "dataplane/packet/wire.hpp"

namespace penstock::pipeline {

void forward(WorkerContext& ctx, Burst& burst) noexcept {
    const route::RouteTable& routes = *ctx.snapshot->routes;
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (!burst.under_way(i)) {
            continue;
        }
        const IpAddr& destination = burst.leaves_to[i];
        const route::Hop* hop = burst.parsed[i].family == IpFamily::V4 ? routes.hop(destination.v4_wire()) : routes.hop(destination);
        if (hop == nullptr) [[unlikely]] {
            burst.drop(i, DropReason::NoRoute);
            continue;
        }
        // Ethernet padding behind a short IP packet stays as it came; what counts against the MTU is the IP packet.
        const auto ip_bytes =
            burst.answers[i] ? static_cast<uint16_t>(burst.length[i] - sizeof(packet::EthernetHeader)) : burst.parsed[i].l3_length;
        if (ip_bytes > hop->mtu) [[unlikely]] {
            burst.drop(i, DropReason::PacketTooBig);
            continue;
        }
        burst.egress[i] = hop->egress;
        if (!hop->is_usable) [[unlikely]] {
            burst.verdict[i] = Verdict::Hold;
            burst.next_hop[i] = hop->next_hop_of(destination);
            continue;
        }
        store(burst.data[i], hop->ethernet_addresses);
        ctx.neighbour_use.note(hop->neighbour, ctx.now_s);
        burst.verdict[i] = Verdict::Transmit;
    }
}

}  // namespace penstock::pipeline
