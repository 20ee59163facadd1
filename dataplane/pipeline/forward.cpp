#include "dataplane/pipeline/forward.hpp"

#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::pipeline {

void forward(WorkerContext& ctx, Burst& burst) noexcept {
    const route::RouteTable& routes = *ctx.snapshot->routes;
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (!burst.under_way(i)) {
            continue;
        }
        const std::optional<route::NextHop> next_hop = routes.next_hop(burst.leaves_to[i]);
        if (!next_hop) [[unlikely]] {
            burst.drop(i, DropReason::NoRoute);
            continue;
        }
        // Ethernet padding behind a short IP packet stays as it came; what counts against the MTU is the IP packet.
        const route::EgressPort* egress = routes.port(next_hop->egress);
        const auto ip_bytes =
            burst.answers[i] ? static_cast<uint16_t>(burst.length[i] - sizeof(packet::EthernetHeader)) : burst.parsed[i].l3_length;
        if (egress != nullptr && ip_bytes > egress->mtu) [[unlikely]] {
            burst.drop(i, DropReason::PacketTooBig);
            continue;
        }
        burst.egress[i] = next_hop->egress;
        const route::Neighbour* neighbour = next_hop->neighbour;
        if (neighbour == nullptr || !neighbour->is_usable()) [[unlikely]] {
            burst.verdict[i] = Verdict::Hold;
            burst.next_hop[i] = next_hop->address;
            continue;
        }
        packet::set_ethernet(std::span(burst.data[i], burst.length[i]), ctx.ports[next_hop->egress.value].mac, neighbour->mac);
        ctx.neighbour_use.note(neighbour->id, ctx.now_s);
        burst.verdict[i] = Verdict::Transmit;
    }
}

}  // namespace penstock::pipeline
