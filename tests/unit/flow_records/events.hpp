// SPDX-License-Identifier: Apache-2.0
// Records for the tests of this folder.
#pragma once

#include "control/flow_records/event.hpp"

namespace penstock::flow_records {

inline const IpAddr kClient = IpAddr::v4(198, 51, 100, 7), kVip = IpAddr::v4(203, 0, 113, 10),
                    kSnat = IpAddr::v4(10, 0, 0, 1), kBackend = IpAddr::v4(10, 0, 0, 42);
inline constexpr int64_t kStartedMs = 1'764'300'000'123;

inline pipeline::TimedFlowRecord flow(
    pipeline::FlowRecord::Event event = pipeline::FlowRecord::Event::Begin) {
    pipeline::TimedFlowRecord timed;
    timed.record = {.forward = {kClient, kVip, 40'000, 80, Protocol::Tcp, {}},
                    .reverse = {kBackend, kSnat, 8080, 1025, Protocol::Tcp, {}},
                    .service = {3},
                    .backend = {4},
                    .life = 0x01020305,
                    .worker = {2},
                    .event = event};
    timed.started_ms = timed.at_ms = timed.last_ms = kStartedMs;
    if (event == pipeline::FlowRecord::Event::End) {
        timed.record.end = pipeline::FlowEnd::Closed;
        timed.record.passed = {pipeline::FlowCount{5, 600}, pipeline::FlowCount{7, 8'000'000'000}};
        timed.last_ms = kStartedMs + 1'500;
        timed.at_ms = kStartedMs + 61'000;
    }
    return timed;
}

inline ServiceFacts web() {
    return {.namespace_name = "default", .name = "web", .port_name = "http"};
}

inline const Origin kOrigin{.gateway = "edge-1", .one_in = 1, .started_s = 0x69291a3c};

}  // namespace penstock::flow_records
