// SPDX-License-Identifier: Apache-2.0
// Log lines of machines without I/O: a machine collects lines, and its driver writes them to the log.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::kube {

struct LogLine {
    enum class Level : uint8_t { Info, Warning };
    Level level = Level::Info;
    std::string text;
    bool operator==(const LogLine&) const = default;
};

class LogLines {
 public:
    void info(std::string text) { lines_.push_back({LogLine::Level::Info, std::move(text)}); }
    void warn(std::string text) { lines_.push_back({LogLine::Level::Warning, std::move(text)}); }
    // Returns the lines since the last call.
    [[nodiscard]] std::vector<LogLine> take() { return std::exchange(lines_, {}); }

 private:
    std::vector<LogLine> lines_;
};

}  // namespace penstock::kube
