// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/offered_mss.hpp"

#include <algorithm>

#include "dataplane/packet/mss.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/other_family.hpp"

namespace penstock::pipeline {

void lower_offered_mss(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const config::PacketPolicy& policy = ctx.snapshot->packets;
    const packet::Parsed& parsed = burst.parsed[i];
    if (!policy.lowers_mss || !parsed.tcp_flags.has(packet::TcpFlags::kSyn)) {
        return;
    }
    constexpr uint16_t kAny = UINT16_MAX;
    const auto limit_of = [&](NicPortId port) {
        return policy.mss_max[port.value] == 0 ? kAny : policy.mss_max[port.value];
    };
    uint16_t mss_max = limit_of(burst.arrival[i].port);
    const conn::Found found = burst.found[i];
    const conn::Entry& connection = ctx.connections.at(found.index);
    const IpAddr destination = connection.key(conn::opposite(found.direction)).source;
    if (const route::Hop* const hop = ctx.snapshot->routes->hop(destination); hop != nullptr) {
        if (!(connection.is_mixed()
                  ? can_go_by_converted(*hop, ByteView(burst.data[i], burst.length[i]), parsed)
                  : can_go_by(*hop, burst.data[i], parsed))) {
            return;  // it will be quoted to its sender, which must find what it sent
        }
        mss_max = std::min(mss_max, limit_of(hop->egress));
    }
    if (mss_max != kAny) {
        packet::lower_mss(std::span(burst.data[i], burst.length[i]), parsed, mss_max);
    }
}

}  // namespace penstock::pipeline
