// Messages as JSON and YAML: protobuf's JSON mapping with the field names of the .proto files, every field present; 64-bit integers are
// strings there, as that mapping has it, because JavaScript cannot hold them. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

namespace penstock::cli {

enum class Format : uint8_t { Table, Wide, Json, Yaml };

// Ends with a newline.
[[nodiscard]] std::string json_text(const google::protobuf::Message& message);
// The same content in block style; `json` is what json_text or json_list wrote.
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
