// Text from objects, judged and made safe to show. Whoever may create a Service chooses these bytes; what we print of them must fit an
// Event, a terminal and a protobuf string, whatever they are (ANN-G3).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "control/annotations/value.hpp"
#include "control/base/interned.hpp"

namespace penstock::semantics {

// Longest piece of foreign text that a message repeats (ANN-G3).
inline constexpr size_t kShownCharsMax = 128;

// Without white space at both ends (ANN-G2, SRC-002).
using annotations::trimmed;

[[nodiscard]] std::string lower_case(std::string_view text);

// At most `chars_max` bytes of `text`; bytes outside printable ASCII become \xNN, a cut is marked by "...".
[[nodiscard]] std::string printable(std::string_view text, size_t chars_max = kShownCharsMax);

// A Node's name or a zone, for people at the gateway: as it is where the gateway takes it, which is at most 253 printable bytes without
// blanks, '/' and ':'; else "". The gateway refuses the whole service port for any other one, and nobody chooses by it there.
[[nodiscard]] InternedText name_for_people(const InternedText& text);

// printable(text) in double quotes.
[[nodiscard]] std::string quoted(std::string_view text);

// Lower-case alphanumerics and '-', alphanumeric at both ends, 1-63 bytes (RFC 1123): a port name (SVC-011).
[[nodiscard]] bool is_dns_label(std::string_view text) noexcept;

// DNS labels joined by dots, at most 253 bytes: what an API server accepts as the name of an object.
[[nodiscard]] bool is_dns_name(std::string_view text) noexcept;

}  // namespace penstock::semantics
