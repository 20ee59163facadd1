// What the annotations of one object say about one setting: which key speaks, and what its value means by the table. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/annotations/table.hpp"

namespace penstock::annotations {

using Annotations = std::map<std::string, std::string>;

struct Value {
    const Spelling* spelling = nullptr;  // the key that speaks
    std::string_view text;               // trimmed, never blank; into the object
    bool valid = false;
    // Where it is valid:
    int64_t number = 0;     // Bool: 0 or 1; Number, Duration: in the native unit
    std::string_view word;  // in the native key's words; Bool: "true" or "false"
};

// The first of the row's keys that is present and not blank; the others are ignored, even where its value is invalid (ANN-G1, ANN-G2).
[[nodiscard]] std::optional<Value> read(const Row& row, const Annotations& annotations);

// Whether the value asks for something that this version does not do (ANN-G4).
[[nodiscard]] bool asks_for_more(const Row& row, const Value& value) noexcept;

// "1-3600 seconds, or with s, m or h behind"; what a key takes, for Events and people.
[[nodiscard]] std::string accepted(const Rule& rule);

// Without white space at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

// Trimmed items of a comma list; a blank one stays, since its reader shall complain.
[[nodiscard]] std::vector<std::string_view> split_at_commas(std::string_view list);

}  // namespace penstock::annotations
