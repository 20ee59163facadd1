// SPDX-License-Identifier: Apache-2.0
// Reads small configuration files as text, with a size limit, and detects changes of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Far above the size of any CA bundle, key, token or kubeconfig (the public CA bundle has 220 KiB); stops
// reads of /dev/zero.
inline constexpr size_t kConfigBytesMax = 4 << 20;
inline constexpr size_t kNamespaceBytesMax = 4096;

// Errors name the file and the kernel's error, never the contents.
[[nodiscard]] Result<std::string> read_file_text(const std::filesystem::path& file,
                                                 size_t bytes_max = kConfigBytesMax);

// Changes when the file behind the name is written or replaced; a Secret volume replaces it by moving a
// symbolic link.
struct FileStamp {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t bytes = 0;
    int64_t changed_ns = 0;
    bool operator==(const FileStamp&) const = default;
};
// All zero if the file does not exist.
[[nodiscard]] FileStamp stamp_of(const std::filesystem::path& file);

}  // namespace penstock::kube
