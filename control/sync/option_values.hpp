// SPDX-License-Identifier: Apache-2.0
// Access to parsed option values: texts, and lists of entries.
#pragma once

#include <algorithm>
#include <boost/program_options/variables_map.hpp>
#include <cctype>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::sync {

// "a, b" and {"a", "b"} are the same list. Whitespace around an entry is ignored.
[[nodiscard]] inline std::vector<std::string> entries_of(const boost::program_options::variables_map& values,
                                                         const char* name) {
    std::vector<std::string> entries;
    if (!values.contains(name)) {
        return entries;
    }
    for (const std::string& value : values[name].as<std::vector<std::string>>()) {
        std::istringstream stream(value);
        for (std::string entry; std::getline(stream, entry, ',');) {
            const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0; };
            entry.erase(entry.begin(), std::find_if_not(entry.begin(), entry.end(), is_blank));
            entry.erase(std::find_if_not(entry.rbegin(), entry.rend(), is_blank).base(), entry.end());
            if (!entry.empty()) {
                entries.push_back(entry);
            }
        }
    }
    return entries;
}

[[nodiscard]] inline std::string option_text(const boost::program_options::variables_map& values,
                                             const char* name) {
    return values.contains(name) ? values[name].as<std::string>() : std::string();
}

// Parses each entry with `parse`. Errors are prefixed with the option's name.
template <typename T, typename Parse>
[[nodiscard]] Result<std::vector<T>> parsed_entries(const std::vector<std::string>& entries,
                                                    const std::string& option, const Parse& parse) {
    std::vector<T> result;
    for (const std::string& entry : entries) {
        auto value = parse(entry);
        if (!value) {
            return in_context(option, std::move(value).error());
        }
        result.push_back(std::move(*value));
    }
    return result;
}

}  // namespace penstock::sync
