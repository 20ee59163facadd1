// SPDX-License-Identifier: Apache-2.0
// Validation and escaping of text from objects. Any user who may create a Service chooses these bytes. The
// escaped text always fits an Event, a terminal and a protobuf string (ANN-G3).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "control/base/dns_name.hpp"
#include "control/base/interned.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::semantics {

// Maximum length of text from an object in a message (ANN-G3).
inline constexpr size_t kShownCharsMax = 128;

// At most `chars_max` bytes of `text`. Bytes outside printable ASCII become \xNN; a cut is marked by "...".
[[nodiscard]] std::string printable(std::string_view text, size_t chars_max = kShownCharsMax);

// A Node's name or a zone for display at the gateway. Unchanged if the gateway accepts it: at most 253
// printable bytes without blanks, '/' and ':'. Otherwise "", because the gateway would refuse the whole
// service port. The gateway does not use these names for decisions.
[[nodiscard]] InternedText name_for_people(const InternedText& text);

// printable(text) in double quotes.
[[nodiscard]] std::string quoted(std::string_view text);

// The names that an API server accepts: of ports (SVC-011) and Services, and of other objects.
using penstock::is_dns_label;
using penstock::is_dns_name;

}  // namespace penstock::semantics
