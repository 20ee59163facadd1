// SPDX-License-Identifier: Apache-2.0
#include "control/options/ini_lines.hpp"

#include <algorithm>
#include <vector>

#include "dataplane/base/text.hpp"

namespace penstock::options {
namespace {

// The text between the first `quote` and the next one; "" if there is no such pair.
std::string_view between(std::string_view text, char quote) {
    const size_t begin = text.find(quote);
    const size_t end = begin == std::string_view::npos ? begin : text.find(quote, begin + 1);
    return end == std::string_view::npos ? std::string_view() : text.substr(begin + 1, end - begin - 1);
}

struct Line {
    size_t number;
    std::string_view name, value;
};

}  // namespace

std::string option_in(std::string_view error) {
    if (error.starts_with("--")) {
        return std::string(error.substr(2, error.find_first_of(": ", 2) - 2));
    }
    const size_t option = error.find("option '");
    std::string_view name =
        option == std::string_view::npos ? std::string_view() : between(error.substr(option), '\'');
    name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
    return std::string(name);
}

std::string at_ini_line(const std::string& file, std::string_view text, const std::string& error) {
    const std::string option = option_in(error);
    const std::string_view line_quoted =
        error.find("invalid line '") == std::string::npos ? "" : between(error, '\'');
    const std::string_view value_quoted = between(error, '"');
    std::vector<Line> of_option, that_fit;
    for (size_t number = 1; !text.empty(); ++number) {
        const size_t end = text.find('\n');
        const std::string_view content = trimmed(text.substr(0, std::min(end, text.find('#'))));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (!line_quoted.empty() && content == line_quoted) {
            return file + ":" + std::to_string(number) + ": " + error;
        }
        const size_t equals = content.find('=');
        if (option.empty() || equals == std::string_view::npos ||
            trimmed(content.substr(0, equals)) != option) {
            continue;
        }
        const Line line{number, option, trimmed(content.substr(equals + 1))};
        of_option.push_back(line);
        if (!value_quoted.empty() && line.value.find(value_quoted) != std::string_view::npos) {
            that_fit.push_back(line);
        }
    }
    const std::vector<Line>& lines = that_fit.empty() ? of_option : that_fit;
    if (lines.empty()) {
        return file + ": " + error;
    }
    std::string where = file;
    for (const Line& line : lines) {
        where += (line.number == lines.front().number ? ":" : ",") + std::to_string(line.number);
    }
    return where + ": " + error;
}

}  // namespace penstock::options
