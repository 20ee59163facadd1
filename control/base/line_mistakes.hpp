// SPDX-License-Identifier: Apache-2.0
// Mistakes in a file of lines, and the lines of such a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/result.hpp"
#include "dataplane/base/text.hpp"

namespace penstock {

// A line may contain any bytes. The quote of a word is limited to one line of printable characters.
[[nodiscard]] inline std::string quoted_start(std::string_view text) {
    constexpr size_t kShownCharsMax = 64;
    std::string out = "\"";
    for (const char c : text.substr(0, kShownCharsMax)) {
        out += c >= ' ' && c <= '~' ? c : '?';
    }
    return out + (text.size() > kShownCharsMax ? "...\"" : "\"");
}

// Calls `visit(content, line)` for each line with content: without text after a #, and trimmed. Lines are
// numbered from 1. Stops when `visit` returns false.
template <typename Visit>
void for_each_line(std::string_view text, Visit&& visit) {
    for (uint32_t line = 1; !text.empty(); ++line) {
        const size_t end = text.find('\n');
        std::string_view content = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        content = trimmed(content.substr(0, content.find('#')));
        if (!content.empty() && !visit(content, line)) {
            return;
        }
    }
}

// The first mistakes of a file are reported individually, the others by their number.
class LineMistakes {
 public:
    explicit LineMistakes(size_t reported_max) : reported_max_(reported_max) {}

    void add(uint32_t line, const std::string& what) { note("line " + std::to_string(line) + ": " + what); }
    // About the file as a whole.
    void add(const std::string& what) { note(what); }
    [[nodiscard]] bool any() const noexcept { return count_ > 0; }
    // InvalidArgument: "line 3: ..." for each mistake, joined by "; ".
    [[nodiscard]] std::unexpected<Error> error() const {
        const size_t more = count_ > reported_max_ ? count_ - reported_max_ : 0;
        return fail(Errc::InvalidArgument,
                    more == 0 ? reported_ : reported_ + "; and " + std::to_string(more) + " more");
    }

 private:
    void note(const std::string& text) {
        if (++count_ <= reported_max_) {
            reported_ += (reported_.empty() ? "" : "; ") + text;
        }
    }

    const size_t reported_max_;
    size_t count_ = 0;
    std::string reported_;
};

}  // namespace penstock
