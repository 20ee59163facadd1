// SPDX-License-Identifier: Apache-2.0
// Random configurations and packets for the comparison of explain with the stages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/worker/inspect.hpp"
#include "tests/bound/stopped_workers.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {

struct World {
    std::vector<TestService> services;
    config::Snapshot snapshot;
    bool is_narrow = false;  // few SNAT ports
};

// Draws a configuration. `gateway` only compiles the Services and keeps their ids.
World some_world(Prng& random, VirtualGateway& gateway);

// Draws a packet: of a live connection, of an endpoint, or of a client of the world's Services.
worker::ExplainQuery some_query(Prng& random, const World& world, StoppedWorkers& workers);

// What a packet has that explain assumes to be absent.
enum class Extra : uint8_t { None, TtlOne, Options };

// The frame of the query's packet.
std::vector<uint8_t> frame_of(Prng& random, const worker::ExplainQuery& query, Extra extra = Extra::None);

}  // namespace penstock::test
