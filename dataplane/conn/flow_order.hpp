// SPDX-License-Identifier: Apache-2.0
// Orders of the control thread to all workers about existing flows: end those of a removed endpoint or
// frontend, and apply a Service's own idle timeout. The control thread decides which flows end, and when; the
// workers only execute the order.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::conn {

// Ends the flows of this backend: UDP flows are removed, TCP flows are reset on both sides (DRAIN-004,
// UDP-001).
struct FlowOrder {
    BackendId backend;
    // If the port is set, only flows of clients that connected to this frontend (DRAIN-007). A backend
    // belongs to one service port, so the order needs no protocol.
    IpAddr frontend;
    L4Port frontend_port = 0;
    bool operator==(const FlowOrder&) const = default;
};

// Numbered from `first` in the order of issue, over the life of the process. A worker has completed all
// orders that a later list no longer contains. The id of a backend must not be reused for another endpoint
// while an order names it.
struct FlowOrders {
    uint64_t first = 1;
    std::vector<FlowOrder> orders;
    [[nodiscard]] uint64_t last() const noexcept { return first + orders.size() - 1; }
};

// Idle limits, in seconds by ServiceId, of established or two-way flows (ANN-03). 0, or an id beyond the end:
// the default of the protocol (NAT-008). Opening and closing states keep their own limits.
struct IdleLimits {
    std::vector<uint32_t> seconds;
    [[nodiscard]] uint32_t of(ServiceId service) const noexcept {
        return service.value < seconds.size() ? seconds[service.value] : 0;
    }
};

}  // namespace penstock::conn
