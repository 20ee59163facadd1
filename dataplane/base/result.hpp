// SPDX-License-Identifier: Apache-2.0
// Errors of the environment and of input (configuration, NIC, API objects) are values. A Result holds the
// requested value or an Error; the Error's text names the object and the rule that was violated. Traffic is
// never an error; it ends in a Verdict (verdict.hpp).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace penstock {

// Error codes for programs. They are chosen so that control/rpc can map each to one gRPC code in one
// function.
enum class Errc : uint8_t {
    InvalidArgument,   // the input breaks a rule that the text names
    NotFound,          // the named object does not exist
    AlreadyExists,     // already in use by another owner: a lock, an address, a name
    Exhausted,         // a capacity of limits.hpp or of the machine is used up
    Unavailable,       // may succeed later: a peer is away, a resource is busy
    PermissionDenied,  // the caller, or this process, has no permission
    Unsupported,       // the machine, the kernel or the PMD cannot do it
    Outdated,          // the caller's request is based on a state that is no longer current
    Corrupt,           // stored data fails its integrity check
    Internal,          // a bug of Penstock, or a library result that its manual excludes
};

struct Error {
    Errc code = Errc::Internal;
    std::string what;  // "service default/web port 443: backend 10.2.0.7 has no IPv4 route"
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(Errc code, std::string what) {
    return std::unexpected(Error{code, std::move(what)});
}

// Adds the caller's context to the error: "port p0: " + "MTU 9000 exceeds what net_af_xdp takes, 3542".
[[nodiscard]] inline std::unexpected<Error> in_context(const std::string& context, Error error) {
    error.what = context + ": " + error.what;
    return std::unexpected(std::move(error));
}

}  // namespace penstock
