// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/icmp/icmp.hpp"

#include "dataplane/packet/quoted.hpp"
#include "dataplane/pipeline/answers/echo.hpp"
#include "dataplane/pipeline/answers/link.hpp"
#include "dataplane/pipeline/icmp/errors.hpp"

namespace penstock::pipeline {
namespace {

// Shorter than its own header. Nothing may answer for an address that only Services have, and Linux decides
// about packets to its own addresses.
void punt_or_drop_cut(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const IpAddr& destination = burst.parsed[i].key.destination;
    if (burst.arrival[i].note.from_host) {
        return burst.relay(i);
    }
    if (ctx.snapshot->services->is_vip(destination) && !ctx.snapshot->routes->is_local(destination)) {
        return burst.drop(i, DropReason::BadIcmp);
    }
    burst.verdict[i] = Verdict::Punt;
}

}  // namespace

void serve_icmp(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.icmp.count; ++at) {
        const uint32_t i = burst.icmp.at[at];
        if (!burst.under_way(i)) {
            continue;
        }
        if (is_about_link_vip(ctx, burst, i)) {
            serve_link_message(ctx, burst, i);
            continue;
        }
        switch (packet::icmp_role(ByteView(burst.data[i], burst.length[i]), burst.parsed[i])) {
            case packet::IcmpRole::Error:
                serve_error(ctx, burst, i);
                break;
            case packet::IcmpRole::EchoRequest:
                serve_echo(ctx, burst, i);
                break;
            case packet::IcmpRole::Cut:
            case packet::IcmpRole::None:
            case packet::IcmpRole::Other:
                punt_or_drop_cut(ctx, burst, i);
                break;
        }
    }
}

}  // namespace penstock::pipeline
