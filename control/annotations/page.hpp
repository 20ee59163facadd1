// SPDX-License-Identifier: Apache-2.0
// Text of docs/annotations.md, generated from the tables. Pure.
#pragma once

#include <string>

#include "control/annotations/table.hpp"

namespace penstock::annotations {

// "yes", "no", or "only VALUE": whether this version supports the setting of the row.
[[nodiscard]] std::string support_text(const SettingSpec& spec);

[[nodiscard]] std::string page_text();

}  // namespace penstock::annotations
