// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline/filled.hpp"

#include <vector>

#include "perf/harness/cycles.hpp"
#include "perf/pipeline/frames.hpp"
#include "perf/pipeline/player.hpp"

namespace penstock::perf {

std::unique_ptr<Gateway> with_room_for(uint32_t flows, IpFamily family, const Gateway::Role& role) {
    const uint32_t units = family == IpFamily::V4 ? 1 : 2;
    return std::make_unique<Gateway>(family, (flows / 9 * 10 + 64) * units, cycles_per_second(), role);
}

std::unique_ptr<Gateway> filled(uint32_t flows, Protocol protocol, IpFamily family) {
    auto gateway = with_room_for(flows, family);
    Player player(*gateway, limits::kBurstMax, cycles_per_second());
    BurstClock clock;
    std::vector<Packet> packets;
    for (uint32_t number = 0; number < flows;) {
        packets.clear();
        for (; number < flows && packets.size() < Player::kFramesMax; ++number) {
            packets.push_back({.key = gateway->client_tuple(number, protocol),
                               .tcp_flags = kSyn,
                               .outcome = Packet::Outcome::Opens});
        }
        player.play(packets, clock);
    }
    pipeline::WorkerContext& context = gateway->context();
    for (uint32_t unit = 0; protocol == Protocol::Tcp && unit < context.connections.high_water(); ++unit) {
        if (context.connections.is_live(unit)) {
            context.connections.set_state({unit}, conn::TcpState::Established, context.now_coarse);
        }
    }
    return gateway;
}

}  // namespace penstock::perf
