// SPDX-License-Identifier: Apache-2.0
// Finds the word that was probably meant, for messages about unknown words.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock {

// Levenshtein distance: insertions, deletions and replacements of one character that change `a` into `b`.
// Work and memory grow with the lengths.
[[nodiscard]] size_t edits_between(std::string_view a, std::string_view b);

// The word of `words` with the fewest edits, ignoring case; the first of several; "" if none is near enough.
// Half of the characters wrong counts as another word.
[[nodiscard]] std::string_view nearest_of(std::string_view word, std::span<const std::string_view> words);

}  // namespace penstock
