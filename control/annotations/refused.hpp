// SPDX-License-Identifier: Apache-2.0
// The annotations that Penstock recognises and refuses, with the reason of each. Their values are not read:
// whatever a user writes there, the Service is served as if it were absent, and an Event says why (ANN-G4).
#pragma once

#include <span>
#include <string_view>

namespace penstock::annotations {

struct RefusedKey {
    std::string_view key;
    std::string_view requirement;  // "ANN-13"
    std::string_view reason;       // for Events and users, in one line
};

[[nodiscard]] std::span<const RefusedKey> refused_keys() noexcept;

// Null for a key that is supported or unknown.
[[nodiscard]] const RefusedKey* find_refused(std::string_view key) noexcept;

}  // namespace penstock::annotations
