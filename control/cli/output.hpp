// The structured formats of the command line: JSON (json.hpp), and the same content as YAML. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "control/cli/json.hpp"

namespace penstock::cli {

enum class Format : uint8_t { Table, Wide, Json, Yaml };

// `json` in block style; `json` is what json_text or json_list wrote.
[[nodiscard]] std::string yaml_text(const std::string& json);

// A list, not an object with one list in it: `penstockctl -o json get services | jq '.[].desired.key.name'`.
template <typename Messages>
[[nodiscard]] std::string json_list(const Messages& messages) {
    std::string text;
    for (const auto& message : messages) {
        text += (text.empty() ? "" : ",\n") + json_text(message);
        text.pop_back();
    }
    return "[" + text + "]\n";
}

// In the machine-readable one of the two formats.
[[nodiscard]] inline std::string structured(const std::string& json, Format format) {
    return format == Format::Yaml ? yaml_text(json) : json;
}

}  // namespace penstock::cli
