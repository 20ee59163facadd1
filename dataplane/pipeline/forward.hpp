// The last step of a packet that leaves: route, neighbour, Ethernet header, and where the frame ends. A packet whose next hop is unknown is
// held while Linux is asked, and one to an address of the gateway host itself is delivered to Linux.
#pragma once

#include <type_traits>

#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i has no next hop: it is delivered to the host where `destination` is its address (EP-007), else dropped.
PENSTOCK_NOINLINE void deliver_to_host(const WorkerContext& ctx, Burst& burst, uint32_t i,
                                       const IpAddr& destination) noexcept;

// Packet i exceeds the MTU of its hop towards `destination`: it leaves in fragments where it may (IPv4 without DF), else its sender is
// told.
PENSTOCK_NOINLINE void exceed_mtu(WorkerContext& ctx, Burst& burst, uint32_t i, const route::Hop& hop,
                                  const IpAddr& destination) noexcept;

// Whether `frame`, of the packet that `parsed` describes, goes by `hop`, whole or in fragments. Where it does not, exceed_mtu() answers it.
[[nodiscard]] bool can_go_by(const route::Hop& hop, const uint8_t* frame,
                             const packet::Parsed& parsed) noexcept;

// Whether a packet to `destination` has a next hop, or is for the host. A look-up: what must not be answered in vain asks this first.
[[nodiscard]] inline bool has_way_to(const route::RouteTable& routes, const IpAddr& destination) noexcept {
    return routes.hop(destination) != nullptr || routes.is_host_address(destination);
}

// Whether packets of `connection` that arrive in `direction` leave with the source that they came with. Replies come from the VIP.
[[nodiscard]] bool keeps_source(const conn::Entry& connection, conn::Direction direction) noexcept;

// Which twin Linux takes a packet from `source` by, without doubting it; unset where Linux has no route there.
[[nodiscard]] NicPortId twin_towards(const route::RouteTable& routes, const IpAddr& source) noexcept;

// Packet i, of `ip_bytes`, which leaves for `destination`: a Be32 or an IpAddr.
template <typename Destination>
PENSTOCK_ALWAYS_INLINE void forward_one(WorkerContext& ctx, Burst& burst, uint32_t i,
                                        const Destination& destination, uint16_t ip_bytes) noexcept {
    // What came behind the IP packet ends here: padding, which may show what another packet left in its sender's buffer (CVE-2003-0001), or
    // what somebody would carry past a filter that reads IP. The NIC pads a frame that is too short now, as it does the gateway's own.
    burst.length[i] = static_cast<uint16_t>(sizeof(packet::EthernetHeader) + ip_bytes);
    const route::Hop* hop = ctx.snapshot->routes->hop(destination);
    if (hop == nullptr) [[unlikely]] {
        if constexpr (std::is_same_v<Destination, Be32>) {
            return deliver_to_host(ctx, burst, i, IpAddr::v4(destination));
        } else {
            return deliver_to_host(ctx, burst, i, destination);
        }
    }
    if (ip_bytes > hop->mtu) [[unlikely]] {
        if constexpr (std::is_same_v<Destination, Be32>) {
            return exceed_mtu(ctx, burst, i, *hop, IpAddr::v4(destination));
        } else {
            return exceed_mtu(ctx, burst, i, *hop, destination);
        }
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
