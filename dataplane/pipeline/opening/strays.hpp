// SPDX-License-Identifier: Apache-2.0
// Forwards strays: packets to a VIP or a SNAT address of a share that another gateway serves, which match no
// connection and no copy here (docs/adr/0051). SYNs too, so that one gateway decides about each flow. A stray
// leaves with another Ethernet header and its TTL or hop limit minus one, and is the same otherwise. The
// other gateway has to be on a link; a packet for which no such gateway can take strays is served here.
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/cpu.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/shares/strays.hpp"

namespace penstock::pipeline {

// The candidates for a packet from outside with this key. Empty: strays are not forwarded, the destination
// belongs to no share or to Linux, or the source is an address of this host.
[[nodiscard]] std::optional<shares::Strays::Candidates> candidates_of(const config::Snapshot& snapshot,
                                                                      const packet::FlowKey& key) noexcept;

// nat::SnatAddress::group of a new flow from `client` to `frontend`.
[[nodiscard]] inline uint8_t snat_group_of(const config::Snapshot& snapshot, const lb::FrontendRow& frontend,
                                           const IpAddr& client) noexcept {
    if (frontend.snat_group != nat::kGroupOfClient) [[likely]] {
        return frontend.snat_group;
    }
    return snapshot.strays == nullptr ? uint8_t{0} : snapshot.strays->snat_group(frontend.address, client);
}

// Whether strays go to a gateway.
enum class StrayState : uint8_t {
    Reached,
    Away,        // Strays::Gateway::takes_strays is false
    NotOnLink,   // Linux has no route to its link address, or a route through a router
    Unanswered,  // it does not answer ARP or NDP
};
// "yes", "away", "not on a link", "does not answer"
[[nodiscard]] const char* to_string(StrayState state) noexcept;
[[nodiscard]] StrayState stray_state(const config::Snapshot& snapshot,
                                     const shares::Strays::Gateway& gateway) noexcept;

struct StrayHop {
    shares::Strays::GatewayNumber gateway = shares::Strays::kNone;
    const route::Hop* hop = nullptr;  // its next hop is the link address of the gateway
};
// Empty: the packet is served here. This gateway is the first of `candidates` that can take it, or none can.
// `snapshot` has strays.
[[nodiscard]] std::optional<StrayHop> stray_hop(const config::Snapshot& snapshot,
                                                const shares::Strays::Candidates& candidates) noexcept;

// Whether the source of a packet with this key may arrive on the port (reverse_path.hpp): the gateway that
// gets a stray cannot examine it. Replies to SNAT addresses are not examined.
[[nodiscard]] bool may_be_forwarded(const config::Snapshot& snapshot, const packet::FlowKey& key,
                                    NicPortId arrival) noexcept;

// Whether forwarding to the gateway of a spread VIP has precedence over a copy with this key. Such packets
// arrive here although their gateway works, and a connection has one owner. Any other stray indicates that
// routers have left its gateway, so the copy is taken over. A packet that the other gateway has sent here,
// which occurs only while plans differ, is served without its copy.
[[nodiscard]] bool precedes_copies(const config::Snapshot& snapshot, const packet::FlowKey& key) noexcept;

// Forwards packet i, which matches no connection, if it is a stray. False: it is not, and is served here. So
// is a packet that the other gateway has sent here, because the plans differ, and one that may not be
// forwarded. Without ctx.snapshot->strays it returns false; callers test it first, to save the call.
[[nodiscard]] PENSTOCK_NOINLINE bool forward_if_stray(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// The same for the misses of the burst. Strays are removed from the misses. Runs after copies have been taken
// over.
PENSTOCK_NOINLINE void forward_strays(WorkerContext& ctx, Burst& burst) noexcept;

// The same for ICMP error i, which quotes a packet of key `quoted` that no connection here has sent. False:
// it is no stray.
[[nodiscard]] PENSTOCK_NOINLINE bool forward_stray_error(WorkerContext& ctx, Burst& burst, uint32_t i,
                                                         const packet::FlowKey& quoted) noexcept;

// The gateway to which packet i, whose verdict is set, was forwarded; computed again from the snapshot.
// kNone: it is no stray.
[[nodiscard]] shares::Strays::GatewayNumber stray_gateway_of(const WorkerContext& ctx, const Burst& burst,
                                                             uint32_t i) noexcept;

// Sends later fragment i to the gateway to which the first one of its datagram went. Drops it if that
// gateway cannot be reached any more.
PENSTOCK_NOINLINE void forward_stray_fragment(WorkerContext& ctx, Burst& burst, uint32_t i,
                                              shares::Strays::GatewayNumber gateway) noexcept;

}  // namespace penstock::pipeline
