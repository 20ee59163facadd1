// SPDX-License-Identifier: Apache-2.0
// The text of an INI file in which every option of a program is described and commented out. Pure.
#pragma once

#include <string>
#include <string_view>

#include "control/options/option_set.hpp"

namespace penstock::options {

// `head`: lines above the options, without comment characters. A program that reads the file runs with its
// defaults. An option is shown with its default, or with the form of its value if it has none.
[[nodiscard]] std::string ini_template(const OptionSet& set, std::string_view head);

}  // namespace penstock::options
