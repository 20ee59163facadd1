// SPDX-License-Identifier: Apache-2.0
// The last lines of a stream of text. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace penstock::gateway {

class LineTail {
 public:
    static constexpr size_t kLinesMax = 12;
    static constexpr size_t kLineBytesMax = 512;  // of a longer line, the beginning is kept

    void add(std::string_view text) {
        for (const char c : text) {
            if (c != '\n') {
                if (partial_.size() < kLineBytesMax) {
                    partial_ += c;
                }
                continue;
            }
            if (!partial_.empty()) {
                lines_.push_back(std::move(partial_));
            }
            partial_.clear();
            if (lines_.size() > kLinesMax) {
                lines_.pop_front();
            }
        }
    }
    // Complete lines, and the last one even if it is not complete; empty lines are omitted.
    [[nodiscard]] std::deque<std::string> lines() const {
        std::deque<std::string> all = lines_;
        if (!partial_.empty()) {
            all.push_back(partial_);
        }
        return all;
    }

 private:
    std::deque<std::string> lines_;
    std::string partial_;
};

}  // namespace penstock::gateway
