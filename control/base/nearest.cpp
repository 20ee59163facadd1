// SPDX-License-Identifier: Apache-2.0
#include "control/base/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace penstock {
namespace {

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower;
}

}  // namespace

size_t edits_between(std::string_view a, std::string_view b) {
    std::vector<size_t> costs(b.size() + 1);
    std::iota(costs.begin(), costs.end(), size_t{0});
    for (size_t i = 0; i < a.size(); ++i) {
        size_t diagonal = std::exchange(costs[0], i + 1);
        for (size_t j = 0; j < b.size(); ++j) {
            const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = costs[j + 1];
            costs[j + 1] = std::min({replaced, diagonal + 1, costs[j] + 1});
        }
    }
    return costs.back();
}

std::string_view nearest_of(std::string_view word, std::span<const std::string_view> words) {
    // Input words may have any length; no known word is longer than this.
    constexpr size_t kLongestWorthATry = 80;
    if (word.size() > kLongestWorthATry) {
        return "";
    }
    std::string_view nearest;
    size_t fewest = word.size() / 2;  // this many edits are too many
    for (const std::string_view known : words) {
        if (const size_t edits = edits_between(lower_case(word), lower_case(known)); edits < fewest) {
            fewest = edits;
            nearest = known;
        }
    }
    return nearest;
}

}  // namespace penstock
