// The last step of a packet that leaves: route, neighbour, Ethernet header. A packet whose next hop is unknown is held while Linux is
// asked.
#pragma once

#include <type_traits>

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

// Packet i, of `ip_bytes`, which leaves for `destination`: a Be32 or an IpAddr.
template <typename Destination>
PENSTOCK_ALWAYS_INLINE void forward_one(WorkerContext& ctx, Burst& burst, uint32_t i, const Destination& destination,
                                        uint16_t ip_bytes) noexcept {
    const route::Hop* hop = ctx.snapshot->routes->hop(destination);
    if (hop == nullptr) [[unlikely]] {
        return burst.drop(i, DropReason::NoRoute);
    }
    // Ethernet padding behind a short IP packet stays as it came; what counts against the MTU is the IP packet.
    if (ip_bytes > hop->mtu) [[unlikely]] {
        return burst.drop(i, DropReason::PacketTooBig);
    }
    burst.egress[i] = hop->egress;
    if (!hop->is_usable) [[unlikely]] {
        burst.verdict[i] = Verdict::Hold;
        if constexpr (std::is_same_v<Destination, Be32>) {
            burst.next_hop[i] = hop->next_hop_of(IpAddr::v4(destination));
        } else {
            burst.next_hop[i] = hop->next_hop_of(destination);
        }
        return;
    }
    store(burst.data[i], hop->ethernet_addresses);
    ctx.neighbour_use.note(hop->neighbour, ctx.now_s);
    burst.verdict[i] = Verdict::Transmit;
}

}  // namespace penstock::pipeline
