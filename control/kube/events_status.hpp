// What the event recorder tells about itself.
#pragma once

#include <cstdint>

namespace penstock::kube {

// Counts are since start; dropped ones are by cause.
struct EventsStatus {
    bool enabled = false;           // false: no cluster to tell, or it forbids Events
    uint64_t posted = 0;            // new Events
    uint64_t repeated = 0;          // Events whose count was raised
    uint64_t waiting = 0;           // now
    uint64_t dropped_overflow = 0;  // too many waited
    uint64_t dropped_rate = 0;      // one object had too much to tell (EVT-002)
    uint64_t dropped_failed = 0;    // refused, or three tries failed
    uint64_t dropped_forbidden = 0;
    uint64_t dropped_gone = 0;  // the object went before its turn came
    bool operator==(const EventsStatus&) const = default;
};

}  // namespace penstock::kube
