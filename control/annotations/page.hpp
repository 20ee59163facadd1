// docs/annotations.md, as the table has it. Pure.
#pragma once

#include <string>

#include "control/annotations/table.hpp"

namespace penstock::annotations {

// "yes", "no", or "only VALUE": whether this version does what the row says.
[[nodiscard]] std::string support_text(const Row& row);

[[nodiscard]] std::string page_text();

}  // namespace penstock::annotations
