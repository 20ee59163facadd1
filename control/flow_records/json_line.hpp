// SPDX-License-Identifier: Apache-2.0
// A flow record as one line of JSON (docs/flow-records.md has the members). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "control/flow_records/event.hpp"

namespace penstock::flow_records {

// Appends one object and a line feed.
void append_json_line(std::string& out, const Event& event, const Origin& origin);

// "2026-01-02T03:04:05.678Z" (RFC 3339)
[[nodiscard]] std::string rfc3339_ms(int64_t ms_since_1970);

}  // namespace penstock::flow_records
