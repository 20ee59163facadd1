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
    constexpr bool operator==(const Backend&) const = default;
};

}  // namespace penstock::lb
