// Where the operator wants no IPv4 options (--ip-options drop): packets with options end here, whoever they are for, but for those to
// groups: IGMP and routing protocols say "router alert" in them (RFC 2113). A source route has met the parser already.
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

// Drops those of the burst's flows. Of the other packets classify asks each.
void drop_options(const WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
