// The log of penstock-sync on standard error: text for people, or one JSON object a line for collectors.
#pragma once

#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::sync {

// `format` is text or json; `level` trace, debug, info, warn, error or off. InvalidArgument names the one that is none of them.
[[nodiscard]] Status set_up_logging(const std::string& format, const std::string& level);

}  // namespace penstock::sync
