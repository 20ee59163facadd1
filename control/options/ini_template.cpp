// SPDX-License-Identifier: Apache-2.0
#include "control/options/ini_template.hpp"

#include <algorithm>

#include "control/options/default_text.hpp"

namespace penstock::options {
namespace {

constexpr size_t kFileColumns = 100;

// `text` as comment lines. A newline of the text begins a new line.
std::string comment(std::string_view text) {
    std::string out, line = "#";
    const auto end_line = [&] {
        out += line + "\n";
        line = "#";
    };
    for (size_t at = 0; at < text.size();) {
        if (text[at] == '\n') {
            end_line();
            ++at;
            continue;
        }
        if (text[at] == ' ') {
            ++at;
            continue;
        }
        const size_t end = std::min(text.find_first_of(" \n", at), text.size());
        if (line.size() + 1 + end - at > kFileColumns && line != "#") {
            end_line();
        }
        line += " " + std::string(text.substr(at, end - at));
        at = end;
    }
    if (line != "#") {
        end_line();
    }
    return out;
}

}  // namespace

std::string ini_template(const OptionSet& set, std::string_view head) {
    std::string text = comment(head);
    for (const OptionSet::Group& group : set.groups()) {
        if (group.is_of_command_line) {
            continue;
        }
        text += "\n# ---- " + group.title + " ----\n";
        for (const OptionSet::Option& option : group.options) {
            const Value& value = option.value;
            text += "\n" + comment(with_default(option));
            text += "#" + option.name + " = " +
                    (value.fallback.empty() ? value.placeholder : value.fallback) + "\n";
        }
    }
    return text;
}

}  // namespace penstock::options
