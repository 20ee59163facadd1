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

// PENSTOCK_TRY(auto value, expression) evaluates an expression of type std::expected once. On success it
// declares `value`; an existing variable may be named instead. On failure it returns the error from the
// enclosing function. A temporary is moved from, never copied. The macro is two statements and needs braces
// below `if`, `for` and `case`.
//
// PENSTOCK_TRY_STATUS(expression) is the same for a Status, or for a value that is not used.
// PENSTOCK_TRY_IN(context, auto value, expression) and PENSTOCK_TRY_STATUS_IN(context, expression) return the
// error in_context(). The context is evaluated on failure only.
#define PENSTOCK_TRY(declaration, ...)                                                                       \
    PENSTOCK_TRY_OR(PENSTOCK_TRY_NAME(__LINE__), std::unexpected(PENSTOCK_TRY_ERROR(__LINE__)), __VA_ARGS__) \
    declaration = *PENSTOCK_TRY_FORWARD(PENSTOCK_TRY_NAME(__LINE__))
#define PENSTOCK_TRY_IN(context, declaration, ...)                                              \
    PENSTOCK_TRY_OR(PENSTOCK_TRY_NAME(__LINE__),                                                \
                    ::penstock::in_context(context, PENSTOCK_TRY_ERROR(__LINE__)), __VA_ARGS__) \
    declaration = *PENSTOCK_TRY_FORWARD(PENSTOCK_TRY_NAME(__LINE__))
#define PENSTOCK_TRY_STATUS(...)                                                                    \
    do {                                                                                            \
        PENSTOCK_TRY_OR(PENSTOCK_TRY_NAME(__LINE__), std::unexpected(PENSTOCK_TRY_ERROR(__LINE__)), \
                        __VA_ARGS__)                                                                \
    } while (false)
#define PENSTOCK_TRY_STATUS_IN(context, ...)                                                        \
    do {                                                                                            \
        PENSTOCK_TRY_OR(PENSTOCK_TRY_NAME(__LINE__),                                                \
                        ::penstock::in_context(context, PENSTOCK_TRY_ERROR(__LINE__)), __VA_ARGS__) \
    } while (false)

// Parts of the macros above. The line number keeps the hidden variables of one function apart.
#define PENSTOCK_TRY_OR(name, failure, ...) \
    auto&& name = __VA_ARGS__;              \
    if (!name) {                            \
        return failure;                     \
    }
#define PENSTOCK_TRY_FORWARD(name) std::forward<decltype(name)>(name)
#define PENSTOCK_TRY_ERROR(line) PENSTOCK_TRY_FORWARD(PENSTOCK_TRY_NAME(line)).error()
#define PENSTOCK_TRY_NAME(line) PENSTOCK_TRY_JOIN(tried_at_line_, line)
#define PENSTOCK_TRY_JOIN(left, right) left##right
