// SPDX-License-Identifier: Apache-2.0
// Finds the line of an INI file that an error refers to. Boost's parser reports none, and values are
// validated after parsing. Pure.
#pragma once

#include <string>
#include <string_view>

namespace penstock::options {

// "FILE:3: ERROR" if `error` names an option of the file ("--workers: ...", "unrecognised option 'x'") or
// quotes one of its lines; several lines if the option is repeated and the error cannot be assigned to one of
// them; "FILE: ERROR" if no line is found.
[[nodiscard]] std::string at_ini_line(const std::string& file, std::string_view text,
                                      const std::string& error);

// The first option that an error names: "workers"; "" if it names none.
[[nodiscard]] std::string option_in(std::string_view error);

}  // namespace penstock::options
