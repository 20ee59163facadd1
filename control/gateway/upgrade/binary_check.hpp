// SPDX-License-Identifier: Apache-2.0
// The rules for a binary that a supervisor may start.
#pragma once

#include <string>

#include "control/base/descriptor.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// Opens the file at `path` for fexecve(). The rules are checked on the opened file, so it can be replaced
// afterwards without effect. InvalidArgument: `path` is not absolute. NotFound: there is no such file.
// PermissionDenied: it is no executable file; it belongs neither to root nor to the user of this process; or
// its group or others can write it.
[[nodiscard]] Result<Descriptor> open_trusted_binary(const std::string& path);

}  // namespace penstock::gateway
