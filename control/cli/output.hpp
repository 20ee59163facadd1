// SPDX-License-Identifier: Apache-2.0
// Structured output formats: JSON (json.hpp), and the same content as YAML. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "control/cli/json.hpp"

namespace penstock::cli {

enum class Format : uint8_t { Table, Wide, Json, Yaml };

// Converts `json`, the output of json_text or json_list, to block-style YAML.
[[nodiscard]] std::string yaml_text(const std::string& json);

// A JSON list, not an object that contains a list: `penstockctl -o json get services | jq
// '.[].desired.key.name'`.
template <typename Messages>
[[nodiscard]] std::string json_list(const Messages& messages) {
    std::string text;
    for (const auto& message : messages) {
        text += (text.empty() ? "" : ",\n") + json_text(message);
        text.pop_back();
    }
    return "[" + text + "]\n";
}

// A JSON object of members that are JSON already.
[[nodiscard]] inline std::string json_object(
    const std::vector<std::pair<std::string, std::string>>& members) {
    std::string text;
    for (const auto& [name, value] : members) {
        text += (text.empty() ? "" : ",\n") + json_quoted(name) + ": " + value;
        text.pop_back();  // the newline of `value`
    }
    return "{" + text + "}\n";
}

// Returns `json` in the given structured format.
[[nodiscard]] inline std::string structured(const std::string& json, Format format) {
    return format == Format::Yaml ? yaml_text(json) : json;
}

}  // namespace penstock::cli
