// Protobuf messages as JSON for scripts: the field names of the .proto files, each field present, and two differences from protobuf's own
// mapping. A 64-bit integer is a number where a double holds it exactly (up to 2^53), and a string above. An enum value is its name without
// the type's prefix: "TCP", not "PROTOCOL_TCP". Pure.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace penstock::cli {

// Ends with a newline. A google.protobuf.Struct is the object that it stands for. Fields without presence are printed with their default;
// unset messages and `optional` fields are left out.
[[nodiscard]] std::string json_text(const google::protobuf::Message& message);

// `text` as a JSON string (RFC 8259, 7).
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace penstock::cli
