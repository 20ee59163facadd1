// SPDX-License-Identifier: Apache-2.0
// An endpoint of one service port, as workers see it.
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
    // How often the backend has returned to its Service's sets, modulo kStays. A client that was pinned to it
    // in an earlier stay is no longer pinned (AFF-005). 0 if the Service has no session affinity.
    uint16_t stay = 0;
    static constexpr uint16_t kStays = 1'023;
    // The endpoint in affinity entries. It has the number of `id`. If clients are pinned for all ports of a
    // Service, it is the number of the address, which the Service's other ports use as well. Unset if the
    // Service has no session affinity.
    EndpointId endpoint = {};
    constexpr bool operator==(const Backend&) const = default;
};

}  // namespace penstock::lb
