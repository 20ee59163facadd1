// SPDX-License-Identifier: Apache-2.0
// Last step for a packet that leaves: route, neighbour, Ethernet header, and trimming of the frame. A packet
// with an unresolved next hop is held while Linux resolves it. A packet to an address of the gateway host is
// delivered to Linux.
//
// The pipeline has one recursion, between this unit and answers/own_errors. forward_one() calls exceed_mtu()
// for a packet larger than the MTU of its hop, and exceed_mtu() calls send_too_big() if the packet must not
// be fragmented. send_too_big() turns the packet into an ICMP error, sets burst.answers[i], and forwards the
// error to the sender by forward_one(). No error is sent about a packet with burst.answers[i] set: if the
// error exceeds the MTU of the hop back, exceed_mtu() fragments it or send_too_big() drops it. So
// forward_one() is entered at most twice for a packet.
#pragma once

#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i has no next hop: it is delivered to the host if `destination` is one of the host's addresses
// (EP-007), otherwise dropped.
PENSTOCK_NOINLINE void deliver_to_host(const WorkerContext& ctx, Burst& burst, uint32_t i,
                                       const IpAddr& destination) noexcept;

// Packet i exceeds the MTU of its hop towards `destination`: it leaves in fragments if allowed (IPv4 without
// DF), otherwise an ICMP error is sent to its sender.
PENSTOCK_NOINLINE void exceed_mtu(WorkerContext& ctx, Burst& burst, uint32_t i, const route::Hop& hop,
                                  const IpAddr& destination) noexcept;

// Whether `frame`, of the packet described by `parsed`, can leave by `hop`, whole or in fragments. If not,
// exceed_mtu() answers it.
[[nodiscard]] bool can_go_by(const route::Hop& hop, const uint8_t* frame,
                             const packet::Parsed& parsed) noexcept;

// Whether a packet to `destination` has a next hop or is for the host. A lookup. Code that must not send an
// answer in vain checks this first.
[[nodiscard]] inline bool has_way_to(const route::RouteTable& routes, const IpAddr& destination) noexcept {
    return routes.hop(destination) != nullptr || routes.is_host_address(destination);
}

// Whether packets of `connection` that arrive in `direction` leave with their source address unchanged. The
// source of replies is always the VIP.
[[nodiscard]] bool keeps_source(const conn::Entry& connection, conn::Direction direction) noexcept;

// The twin through which Linux accepts a packet from `source` without a reverse-path failure; unset if Linux
// has no route to that source.
[[nodiscard]] NicPortId twin_towards(const route::RouteTable& routes, const IpAddr& source) noexcept;

namespace detail {
[[nodiscard]] inline const IpAddr& as_address(const IpAddr& address) noexcept {
    return address;
}
[[nodiscard]] inline IpAddr as_address(Be32 address) noexcept {
    return IpAddr::v4(address);
}
}  // namespace detail

// Forwards packet i, of `ip_bytes`, to `destination` by `hop`, the next hop of that destination; null: it has
// none. `Destination` is a Be32 or an IpAddr.
template <typename Destination>
PENSTOCK_ALWAYS_INLINE void forward_by(WorkerContext& ctx, Burst& burst, uint32_t i, const route::Hop* hop,
                                       const Destination& destination, uint16_t ip_bytes) noexcept {
    // Bytes behind the IP packet are cut off. They are padding, which may disclose what another packet left
    // in the sender's buffer (CVE-2003-0001), or data carried past a filter that inspects IP only. The NIC
    // pads a frame that is now too short, as it does with the gateway's own frames.
    burst.length[i] = static_cast<uint16_t>(sizeof(packet::EthernetHeader) + ip_bytes);
    if (hop == nullptr) [[unlikely]] {
        return deliver_to_host(ctx, burst, i, detail::as_address(destination));
    }
    if (ip_bytes > hop->mtu) [[unlikely]] {
        return exceed_mtu(ctx, burst, i, *hop, detail::as_address(destination));
    }
    burst.egress[i] = hop->egress;
    if (!hop->is_usable) [[unlikely]] {
        burst.verdict[i] = Verdict::Hold;
        burst.next_hop[i] = hop->next_hop_of(detail::as_address(destination));
        return;
    }
    store(burst.data[i], hop->ethernet_addresses);
    ctx.neighbour_use.note(hop->neighbour, ctx.now_s);
    burst.verdict[i] = Verdict::Transmit;
}

// The same with a look-up of the next hop.
template <typename Destination>
PENSTOCK_ALWAYS_INLINE void forward_one(WorkerContext& ctx, Burst& burst, uint32_t i,
                                        const Destination& destination, uint16_t ip_bytes) noexcept {
    forward_by(ctx, burst, i, ctx.snapshot->routes->hop(destination), destination, ip_bytes);
}

}  // namespace penstock::pipeline
