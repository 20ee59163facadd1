// SPDX-License-Identifier: Apache-2.0
// Status of the event recorder.
#pragma once

#include <cstdint>

namespace penstock::kube {

// Counts are since start; dropped ones are by cause.
struct EventsStatus {
    bool enabled = false;           // false: no cluster connected, or it forbids Events
    uint64_t posted = 0;            // new Events
    uint64_t repeated = 0;          // Events whose count was increased
    uint64_t waiting = 0;           // current
    uint64_t dropped_overflow = 0;  // queue full
    uint64_t dropped_rate = 0;      // per-object rate limit (EVT-002)
    uint64_t dropped_failed = 0;    // refused, or three attempts failed
    uint64_t dropped_forbidden = 0;
    uint64_t dropped_gone = 0;  // the object was deleted before its Event was sent
    bool operator==(const EventsStatus&) const = default;
};

}  // namespace penstock::kube
