// What the control thread asks of all workers about flows that live already: to end those of an endpoint or frontend that is gone, and to
// keep a Service's idle ones for another time than usual. Which flows must end, and when, is decided there; workers only work it off.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::conn {

// End the flows of this backend: UDP flows vanish, TCP flows are reset on both sides (DRAIN-004, UDP-001).
struct FlowOrder {
    BackendId backend;
    // Where the port is set: only flows whose client went to this frontend (DRAIN-007). A backend belongs to one service port, so its
    // protocol need not be said.
    IpAddr frontend;
    L4Port frontend_port = 0;
    bool operator==(const FlowOrder&) const = default;
};

// Numbered from `first` in the order of issue, over the life of the process: a worker has done all that a later list no longer holds. A
// backend's id may not be given to another endpoint while an order names it.
struct FlowOrders {
    uint64_t first = 1;
    std::vector<FlowOrder> orders;
    [[nodiscard]] uint64_t last() const noexcept { return first + orders.size() - 1; }
};

// Seconds by ServiceId that an established or two-way flow may be idle (ANN-03). 0, or beyond the end: the default of its protocol
// (NAT-008). States in which a flow is opening or closing keep theirs.
struct IdleLimits {
    std::vector<uint32_t> seconds;
    [[nodiscard]] uint32_t of(ServiceId service) const noexcept {
        return service.value < seconds.size() ? seconds[service.value] : 0;
    }
};

}  // namespace penstock::conn
