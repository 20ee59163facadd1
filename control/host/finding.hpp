// SPDX-License-Identifier: Apache-2.0
// The result of one check of the machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::host {

// In rising order of urgency.
enum class Level : uint8_t {
    Ok,
    Unknown,  // a file that the check reads is missing; the text names it
    Warning,  // the gateway works, with less throughput, or not in all cases
    Fault,    // the gateway does not start, or does not forward
};

[[nodiscard]] constexpr std::string_view to_string(Level level) noexcept {
    constexpr std::string_view kNames[] = {"ok", "unknown", "warning", "fault"};
    return kNames[static_cast<size_t>(level)];
}

struct Finding {
    std::string check;   // a name of kChecks (doctor.hpp)
    std::string object;  // "0000:03:00.0", "node 0"; "": the machine
    Level level = Level::Ok;
    std::string text;
    std::vector<std::string> commands = {};  // that mend it, or show the cause
    bool operator==(const Finding&) const = default;
};

// The findings of one check. Functions return the check itself, so that commands can follow.
class Check {
 public:
    Check(std::vector<Finding>& findings, std::string_view name) : findings_(findings), name_(name) {}

    Check& add(Level level, std::string object, std::string text) {
        findings_.push_back({std::string(name_), std::move(object), level, std::move(text)});
        return *this;
    }
    Check& ok(std::string object, std::string text) {
        return add(Level::Ok, std::move(object), std::move(text));
    }
    Check& warning(std::string object, std::string text) {
        return add(Level::Warning, std::move(object), std::move(text));
    }
    Check& fault(std::string object, std::string text) {
        return add(Level::Fault, std::move(object), std::move(text));
    }
    // `what` cannot be read.
    Check& unknown(std::string object, const std::string& what) {
        return add(Level::Unknown, std::move(object), what + " cannot be read");
    }
    // The command that mends the last finding.
    Check& mend(std::string command) {
        findings_.back().commands.push_back(std::move(command));
        return *this;
    }

 private:
    std::vector<Finding>& findings_;
    std::string_view name_;
};

[[nodiscard]] inline Level worst(const std::vector<Finding>& findings) {
    Level level = Level::Ok;
    for (const Finding& finding : findings) {
        level = std::max(level, finding.level);
    }
    return level;
}

}  // namespace penstock::host
