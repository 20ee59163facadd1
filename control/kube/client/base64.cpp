// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/base64.hpp"

#include <array>
#include <cstdint>

namespace penstock::kube {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValues = [] {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    for (size_t i = 0; i < kAlphabet.size(); ++i) {
        values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
    }
    return values;
}();

}  // namespace

std::optional<std::string> base64_decoded(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    uint32_t bits = 0;
    size_t digits = 0;
    size_t padding = 0;
    for (const char c : text) {
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
            continue;
        }
        if (c == '=') {
            ++padding;
            continue;
        }
        const int8_t value = kValues[static_cast<uint8_t>(c)];
        if (value < 0 || padding > 0) {
            return std::nullopt;
        }
        bits = bits << 6 | static_cast<uint32_t>(value);
        if (++digits % 4 != 1) {
            // In each group of four digits, the second, third and fourth complete a byte; higher bits were
            // used before.
            const size_t left = (4 - (digits - 1) % 4 - 1) * 2;
            bytes.push_back(static_cast<char>(bits >> left & 0xff));
        }
    }
    // Digits of the last group that encode no byte are written as padding.
    const size_t rest = digits % 4;
    if (rest == 1 || (rest + padding) % 4 != 0 || padding > 2) {
        return std::nullopt;
    }
    return bytes;
}

std::string base64_encoded(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const size_t taken = bytes.size() - i < 3 ? bytes.size() - i : 3;
        uint32_t group = 0;
        for (size_t k = 0; k < 3; ++k) {
            group = group << 8 | (k < taken ? static_cast<uint8_t>(bytes[i + k]) : 0U);
        }
        for (size_t k = 0; k < 4; ++k) {
            text.push_back(k <= taken ? kAlphabet[group >> (18 - 6 * k) & 63] : '=');
        }
    }
    return text;
}

}  // namespace penstock::kube
