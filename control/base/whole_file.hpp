// SPDX-License-Identifier: Apache-2.0
// Small files that are read and replaced as a whole: saved states that must survive a crash.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/base/result.hpp"

namespace penstock {

// Replaces the file by one with these bytes and mode 0600, creating its folder if needed. After a crash it
// has the old or the new content. Blocks until both file and folder are on disk. Unavailable: names path
// and step; the old file is unchanged.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view bytes);

// nullopt: there is no such file. Corrupt: not a regular file, or longer than `bytes_max`. Unavailable: it
// cannot be read.
[[nodiscard]] Result<std::optional<std::string>> read_whole_file(const std::string& path, size_t bytes_max);

}  // namespace penstock
