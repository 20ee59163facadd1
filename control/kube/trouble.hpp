// Why a request to the API server did not bring what was asked for, as far as it decides what to do next. Pure values.
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
        Behind,   // the server has not seen our version yet, or never will: it was restored from a backup
        Unauthorized,  // 401
        Forbidden,     // 403
        NotServed,     // 404: there is no such collection
        Refused,       // 400, 405, 422: the request has something that this server does not take
        Busy,          // 429, 503: later, and perhaps it says when
        Unreachable,   // no answer came
        Broken,        // an answer came, and is malformed, cut off, or an error of another kind
        NoEnd,         // a streamed list did not end in time, or ended as a plain watch would
    };
    Kind kind = Kind::Broken;
    std::string name;  // short, for counters: "http_410", "connect", "decode"
    std::string what;  // for people
    std::optional<std::chrono::seconds> retry_after;
};

// The body of an answer that is an error, or an ERROR event of a watch.
[[nodiscard]] Trouble trouble_of(const ApiStatus& status);
[[nodiscard]] Trouble trouble_of(const TransportError& error);

}  // namespace penstock::kube
