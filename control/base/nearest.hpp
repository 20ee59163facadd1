// The word that was probably meant, for messages about words that are not known.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock {

// Insertions, deletions and replacements of one character that lead from `a` to `b` (Levenshtein). Work and memory grow with the lengths.
[[nodiscard]] size_t edits_between(std::string_view a, std::string_view b);

// Of `words` the one that is fewest edits away, whatever their case; the first of several; "" where none is near enough to be meant: half
// of a word wrong is another word.
[[nodiscard]] std::string_view nearest_of(std::string_view word, std::span<const std::string_view> words);

}  // namespace penstock
