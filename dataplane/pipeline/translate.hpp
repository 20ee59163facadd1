// SPDX-License-Identifier: Apache-2.0
// Sends a packet that has a connection: addresses, ports, TTL and checksums are rewritten, then the packet is
// forwarded. Both IP versions and both directions share one body: the packet leaves with the key of the other
// direction, and the checksum deltas are inverted.
#pragma once

#include <array>

#include "dataplane/packet/rewrite.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/other_family.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

namespace detail {
template <packet::WireAddress Address>
PENSTOCK_ALWAYS_INLINE void translate_by(Burst& burst, uint32_t i, const conn::Entry& connection,
                                         conn::Direction direction, const Address& source,
                                         const Address& destination) noexcept {
    const conn::Direction other = conn::opposite(direction);
    const auto is_reverse = static_cast<uint16_t>(direction);
    packet::translate_packet<Address>(
        burst.data[i], burst.parsed[i], source, destination,
        Be16::from_host(connection.destination_port(other)), Be16::from_host(connection.source_port(other)),
        connection.l4_delta.inverse_if(is_reverse), connection.ip_delta.inverse_if(is_reverse));
}
}  // namespace detail

// The next hop of a packet of a connection; null if there is none. Also null for a mixed connection:
// send_to_other_family() looks it up.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE const route::Hop* hop_of(const WorkerContext& ctx,
                                                              conn::Found found) noexcept {
    const conn::Entry& connection = ctx.connections.at(found.index);
    const conn::Direction other = conn::opposite(found.direction);
    const route::RouteTable& routes = *ctx.snapshot->routes;
    if (!connection.is_v6()) [[likely]] {
        return routes.hop(connection.v4_source(other));
    }
    return connection.is_mixed() ? nullptr : routes.hop_v6(connection.v6_source(other));
}

// Next hops of the hits of a burst, by their position in burst.hits.
using HitHops = std::array<const route::Hop*, limits::kBurstMax>;

// A pass of its own: each step of a look-up waits for the step before. The look-ups of several packets
// overlap if they follow one another, but not if a packet is tracked and rewritten between them.
PENSTOCK_ALWAYS_INLINE void find_hops(const WorkerContext& ctx, const Burst& burst, HitHops& hops) noexcept {
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        hops[at] = hop_of(ctx, burst.found[burst.hits.at[at]]);
    }
}

// Translates packet i, of connection found[i], and forwards it to the resulting destination. `hop`: of
// hop_of().
PENSTOCK_ALWAYS_INLINE void send_by(WorkerContext& ctx, Burst& burst, uint32_t i,
                                    const route::Hop* hop) noexcept {
    const conn::Entry& connection = ctx.connections.at(burst.found[i].index);
    const conn::Direction direction = burst.found[i].direction;
    const conn::Direction other = conn::opposite(direction);
    if (!connection.is_v6()) [[likely]] {
        const Be32 destination = connection.v4_source(other);
        detail::translate_by(burst, i, connection, direction, connection.v4_destination(other), destination);
        forward_by(ctx, burst, i, hop, destination, burst.parsed[i].l3_length);
    } else if (!connection.is_mixed()) [[likely]] {
        const std::array<uint8_t, 16>& destination = connection.v6_source(other);
        detail::translate_by(burst, i, connection, direction, connection.v6_destination(other), destination);
        forward_by(ctx, burst, i, hop, IpAddr::v6(destination), burst.parsed[i].l3_length);
    } else {
        send_to_other_family(ctx, burst, i, burst.found[i]);
    }
}

// The same with a look-up of the next hop.
PENSTOCK_ALWAYS_INLINE void send_one(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    send_by(ctx, burst, i, hop_of(ctx, burst.found[i]));
}

}  // namespace penstock::pipeline
