// SPDX-License-Identifier: Apache-2.0
// Names and values of an INI file, for readers that know only some of a program's options. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::options {

// In the order of the file; a name may occur several times. Names and values are not checked.
// InvalidArgument: a line is neither NAME = VALUE nor a comment.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> ini_values(const std::string& text);

}  // namespace penstock::options
