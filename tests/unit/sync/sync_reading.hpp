// SPDX-License-Identifier: Apache-2.0
// Status of a penstock-sync that watches three collections and has two gateways, one of them unreachable,
// and assigns addresses (address_example.hpp).
#pragma once

#include "control/sync/status.hpp"
#include "tests/unit/sync/addresses/address_example.hpp"

namespace penstock::sync::test {

[[nodiscard]] inline SyncReading example_reading() {
    using namespace std::chrono_literals;
    SyncReading reading{
        .version = "1.2.3", .identity = "host-7-0badcafe", .uptime = 90s, .resident_bytes = 64 << 20};
    reading.source = {.source = "https://192.0.2.1:6443", .heartbeat_age = 1500ms};
    reading.source.collections = {
        {.kind = "services",
         .path = "/api/v1/services",
         .state = kube::CollectionStatus::State::Watching,
         .listed = true,
         .objects = 5000,
         .quarantined = 2,
         .resource_version = "4711",
         .last_event_age = 250ms,
         .stale_age = 0ms,
         .watch_restarts = 3,
         .relists = 1,
         .errors = {{"connect", 4}, {"http_429", 1}}},
        {.kind = "endpointslices",
         .path = "/apis/discovery.k8s.io/v1/endpointslices",
         .state = kube::CollectionStatus::State::BackingOff,
         .listed = true,
         .objects = 7000,
         .resource_version = "4712",
         .last_event_age = 65s,
         .stale_age = 12s,
         .last_error = "connection refused"},
        {.kind = "nodes", .path = "/api/v1/nodes", .state = kube::CollectionStatus::State::Listing},
    };
    GatewayStatus edge1{.target = "unix:/run/penstock/penstockd.sock",
                        .name = "edge-1",
                        .connected = true,
                        .heartbeat_age = 2s};
    edge1.desired_version = 18;
    edge1.applied_version = 17;
    edge1.lag = 40ms;
    edge1.applied_age = 3s;
    edge1.changes_waiting = 5;
    edge1.services = 9000;
    edge1.refused = 1;
    edge1.full_states = 1;
    edge1.deltas = 16;
    edge1.notices = {{"ExternalIPNotAllowed", 3}};
    for (const auto took : {500us, 4000us, 12000us, 12000us, 40000000us}) {
        edge1.apply_latency.observe(took);
    }
    reading.gateways = {edge1, {.target = "192.0.2.9:9106", .last_error = "connection refused"}};
    reading.events = {.enabled = true, .posted = 8, .repeated = 2, .waiting = 1, .dropped_rate = 3};
    reading.addresses = example_addresses();
    return reading;
}

}  // namespace penstock::sync::test
