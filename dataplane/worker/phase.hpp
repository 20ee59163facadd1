// SPDX-License-Identifier: Apache-2.0
// The part of its round that a worker is in, for the report about a stalled worker.
#pragma once

#include <cstdint>

namespace penstock::worker {

enum class Phase : uint8_t {
    Starting,
    Receiving,     // from a NIC's queue or a ring; PMD code
    Forwarding,    // the pipeline's stages
    Sending,       // to a NIC's queue or a ring; PMD code
    FlowOrders,    // ending flows of removed endpoints
    Housekeeping,  // aging of connections, held packets
    Asleep,
    Stopped,
};

[[nodiscard]] constexpr const char* to_string(Phase phase) noexcept {
    switch (phase) {
        case Phase::Starting:
            return "starting";
        case Phase::Receiving:
            return "receiving";
        case Phase::Forwarding:
            return "forwarding";
        case Phase::Sending:
            return "sending";
        case Phase::FlowOrders:
            return "flow orders";
        case Phase::Housekeeping:
            return "housekeeping";
        case Phase::Asleep:
            return "asleep";
        case Phase::Stopped:
            return "stopped";
    }
    return "";
}

}  // namespace penstock::worker
