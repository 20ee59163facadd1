// SPDX-License-Identifier: Apache-2.0
// Protobuf messages as JSON for scripts, with the field names of the .proto files and all fields present. Two
// differences from protobuf's own mapping: a 64-bit integer is a number if a double represents it exactly (up
// to 2^53), otherwise a string. An enum value is its name without the prefix of the type: "TCP", not
// "PROTOCOL_TCP". Pure.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace penstock::cli {

// Ends with a newline. A google.protobuf.Struct is printed as the object that it represents. Fields without
// presence are printed with their default; unset messages and `optional` fields are omitted.
[[nodiscard]] std::string json_text(const google::protobuf::Message& message);

// `text` as a JSON string (RFC 8259, 7).
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace penstock::cli
