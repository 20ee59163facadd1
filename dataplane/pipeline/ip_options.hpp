// SPDX-License-Identifier: Apache-2.0
// Drops packets with IPv4 options, whatever their destination, if the operator has disabled them
// (--ip-options drop). Multicast packets are exempt: IGMP and routing protocols use the "router alert" option
// (RFC 2113). Packets with a source route have already been dropped by the parser.
#pragma once

#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

[[nodiscard]] inline bool has_refused_options(const WorkerContext& ctx,
                                              const packet::Parsed& parsed) noexcept {
    return !ctx.snapshot->packets.passes_ip_options && parsed.kind != packet::PacketKind::Other &&
           parsed.family == IpFamily::V4 &&
           parsed.l4_offset - parsed.l3_offset != sizeof(packet::Ipv4Header) &&
           !parsed.key.destination.is_multicast();
}

// Checks the flows of the burst. classify checks each of the other packets.
void drop_options(const WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
