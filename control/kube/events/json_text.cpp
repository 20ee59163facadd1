// SPDX-License-Identifier: Apache-2.0
#include "control/kube/events/json_text.hpp"

#include <array>
#include <cctype>
#include <ctime>

#include "control/log/log.hpp"

namespace penstock::kube {
namespace {

// `seconds` since the epoch as UTC, formatted by strftime.
std::string utc_text(std::time_t seconds, const char* format) {
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, sizeof("2006-01-02T15:04:05Z")> text{};
    return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace

void add_key(std::string& json, std::string_view name) {
    if (json.back() != '{') {
        json += ',';
    }
    json.append("\"").append(name).append("\":");
}

void add_text(std::string& json, std::string_view name, std::string_view value) {
    add_key(json, name);
    json.append("\"").append(log::json_escaped(value)).append("\"");
}

void add_text_if_any(std::string& json, std::string_view name, std::string_view value) {
    if (!value.empty()) {
        add_text(json, name, value);
    }
}

void add_number(std::string& json, std::string_view name, int64_t value) {
    add_key(json, name);
    json += std::to_string(value);
}

std::string time_text(std::chrono::system_clock::time_point time) {
    return utc_text(std::chrono::system_clock::to_time_t(time), "%Y-%m-%dT%H:%M:%SZ");
}

std::string micro_time_text(std::chrono::system_clock::time_point time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const auto micros = std::chrono::floor<std::chrono::microseconds>(time - seconds).count();
    const std::string digits = std::to_string(1'000'000 + micros).substr(1);
    return utc_text(std::chrono::system_clock::to_time_t(seconds), "%Y-%m-%dT%H:%M:%S") + "." + digits + "Z";
}

std::string path_segment(std::string_view text) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    std::string segment;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~') {
            segment += c;
        } else {
            segment += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
        }
    }
    return segment;
}

}  // namespace penstock::kube
