// Errors of the environment and of input (configuration, NIC, API objects) are values: a Result holds what was asked for, or an Error
// whose text names the thing and the rule it met. Traffic is never an error; it ends in a Verdict (verdict.hpp).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace penstock {

// What kind of trouble, for programs; chosen so that control/rpc can map each to one gRPC code in one function.
enum class Errc : uint8_t {
    InvalidArgument,   // the input breaks a rule that the text names
    NotFound,          // the thing named does not exist
    AlreadyExists,     // somebody else holds it: a lock, an address, a name
    Exhausted,         // a capacity of limits.hpp or of the machine is used up
    Unavailable,       // may work later: a peer is away, a resource is busy
    PermissionDenied,  // the caller, or this process, lacks the right
    Unsupported,       // the machine, the kernel or the PMD cannot do it
    Outdated,          // the caller builds on a state that is not the current one
    Corrupt,           // stored data fails its own check
    Internal,          // a bug of ours, or an answer of a library that its manual excludes
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

// The same error, seen from one level further up: "port p0: " + "MTU 9000 exceeds what net_af_xdp takes, 3542".
[[nodiscard]] inline std::unexpected<Error> in_context(const std::string& context, Error error) {
    error.what = context + ": " + error.what;
    return std::unexpected(std::move(error));
}

}  // namespace penstock
