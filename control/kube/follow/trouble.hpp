// SPDX-License-Identifier: Apache-2.0
// Classifies why a request to the API server failed, as far as it determines the next step. Pure values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "control/kube/api_status.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

struct Trouble {
    enum class Kind : uint8_t {
        Expired,  // 410: the version, or the continue token, is no longer kept
        Behind,   // the server has not reached the requested version yet, or never will (restored backup)
        Unauthorized,  // 401
        Forbidden,     // 403
        NotServed,     // 404: the collection does not exist
        Refused,       // 400, 405, 422: the request has a part that this server does not accept
        Busy,          // 429, 503: retry later, possibly with Retry-After
        Unreachable,   // no response
        Broken,        // a response that is malformed, truncated, or an error of another kind
        NoEnd,         // a streamed list did not end in time, or ended like a plain watch
    };
    Kind kind = Kind::Broken;
    std::string name;  // short, for counters: "http_410", "connect", "decode"
    std::string what;  // human-readable
    std::optional<std::chrono::seconds> retry_after;
};

// The body of an error response, or an ERROR event of a watch.
[[nodiscard]] Trouble trouble_of(const ApiStatus& status);
[[nodiscard]] Trouble trouble_of(const TransportError& error);

}  // namespace penstock::kube
