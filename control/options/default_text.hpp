// SPDX-License-Identifier: Apache-2.0
// The description of an option as complete sentences with its default, for pages and files. Pure.
#pragma once

#include <string>

#include "control/options/option_set.hpp"

namespace penstock::options {

// "Maximum receive burst, 4-64 packets. Default: 64."; without the default if there is none, or if the
// description names it.
[[nodiscard]] inline std::string with_default(const OptionSet::Option& option) {
    std::string text = option.description;
    if (!text.ends_with('.')) {
        text += ".";
    }
    const bool is_named =
        text.find("(default") != std::string::npos || text.find("Default:") != std::string::npos;
    if (!option.value.fallback.empty() && !is_named) {
        text += " Default: " + option.value.fallback + ".";
    }
    return text;
}

}  // namespace penstock::options
