// SPDX-License-Identifier: Apache-2.0
// Collects mistakes, so that an operator gets all of them at once: as one Error with a line for each.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/base/result.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::options {

class Mistakes {
 public:
    // Adds each line of an error. Equal lines are kept once.
    void note(const Error& error) {
        code_ = lines_.empty() ? error.code : code_;
        for (const std::string_view line : split(error.what, '\n')) {
            if (std::ranges::find(lines_, line) == lines_.end()) {
                lines_.emplace_back(line);
            }
        }
    }
    void note(const Status& status) {
        if (!status) {
            note(status.error());
        }
    }
    // The same with `context` before each line.
    void note_in(std::string_view context, const Error& error) {
        for (const std::string_view line : split(error.what, '\n')) {
            note(Error{error.code, std::string(context) + ": " + std::string(line)});
        }
    }

    [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
    [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }
    // The error has the code of the first mistake.
    [[nodiscard]] Status result() const {
        if (lines_.empty()) {
            return {};
        }
        std::string all;
        for (const std::string& line : lines_) {
            all += (all.empty() ? "" : "\n") + line;
        }
        return fail(code_, std::move(all));
    }

 private:
    std::vector<std::string> lines_;
    Errc code_ = Errc::InvalidArgument;
};

}  // namespace penstock::options
