// Names the line of an INI file that an error is about. Boost's parser reports none, and values are checked after it is done. Pure.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

// "FILE:3: ERROR" where `error` names an option of the file ("--workers: ...", "unrecognised option 'x'") or quotes a line of it; several
// lines where the option is repeated and the error fits none of them alone; "FILE: ERROR" where no line is found.
[[nodiscard]] std::string at_ini_line(const std::string& file, std::string_view text,
                                      const std::string& error);

// The option that an error names first: "workers"; "" if it names none.
[[nodiscard]] std::string option_in(std::string_view error);

}  // namespace penstock
