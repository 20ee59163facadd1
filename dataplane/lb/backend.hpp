// A real endpoint of one service port, as workers see it.
#pragma once

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::lb {

struct Backend {
    BackendId id;  // stable over configurations for the same (service port, address, port)
    IpAddr address;
    L4Port port = 0;
    uint16_t weight = 1;
    // How often it has come back into its Service's sets, below kStays and then from 0 again: a client that was pinned to it in an earlier
    // stay has no claim to it (AFF-005). 0 where the Service has no session affinity.
    uint16_t stay = 0;
    static constexpr uint16_t kStays = 1'023;
    // What affinity entries call it. It has the number of `id`; where a client is pinned for all ports of a Service, the number of its
    // address, which the Service's other ports use as well. Unset where the Service has no session affinity.
    EndpointId endpoint = {};
    constexpr bool operator==(const Backend&) const = default;
};

}  // namespace penstock::lb
