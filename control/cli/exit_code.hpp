// SPDX-License-Identifier: Apache-2.0
// Exit codes of penstockctl, a stable interface for scripts. `penstockctl --help` lists them.
#pragma once

#include "dataplane/base/result.hpp"

namespace penstock::cli {

inline constexpr int kExitRefused = 1;  // or the object does not exist
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnreachable = 3;

[[nodiscard]] constexpr int exit_code(Errc code) noexcept {
    switch (code) {
        case Errc::InvalidArgument:
            return kExitUsage;
        case Errc::Unavailable:
            return kExitUnreachable;
        default:
            return kExitRefused;
    }
}
[[nodiscard]] inline int exit_code(const Error& error) noexcept {
    return exit_code(error.code);
}

}  // namespace penstock::cli
