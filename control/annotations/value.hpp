// SPDX-License-Identifier: Apache-2.0
// Reads one setting from the annotations of an object: selects the key in use and parses its value by the
// table. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "control/annotations/table.hpp"

namespace penstock::annotations {

using Annotations = std::map<std::string, std::string>;

struct Value {
    const Spelling* spelling = nullptr;  // the key in use
    std::string_view text;               // trimmed, never blank; points into the object
    bool valid = false;
    // The following are set if `valid`:
    int64_t number = 0;     // Bool: 0 or 1; Number, Duration: in the native unit
    std::string_view word;  // the value in the words of the native key; Bool: "true" or "false"
};

// The first of the row's keys that is present and not blank. The others are ignored, even if its value is
// invalid (ANN-G1, ANN-G2).
[[nodiscard]] std::optional<Value> read(const SettingSpec& spec, const Annotations& annotations);

// Whether the value requests something that this version does not support (ANN-G4).
[[nodiscard]] bool asks_for_more(const SettingSpec& spec, const Value& value) noexcept;

// The values that a key accepts, for Events and users: "1-3600 s, optionally with suffix s, m or h".
[[nodiscard]] std::string accepted(const Rule& rule);

}  // namespace penstock::annotations
