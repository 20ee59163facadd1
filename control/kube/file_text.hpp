// Small configuration files as text, with a bound, and what tells that one has changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "dataplane/base/result.hpp"

namespace penstock::kube {

// No CA bundle, key, token or kubeconfig comes near it (the public CA bundle has 220 KiB); /dev/zero as a path does.
inline constexpr size_t kConfigBytesMax = 4 << 20;
inline constexpr size_t kNamespaceBytesMax = 4096;

// Errors name the file and what the kernel said, never its contents.
[[nodiscard]] Result<std::string> read_file_text(const std::filesystem::path& file,
                                                 size_t bytes_max = kConfigBytesMax);

// Without white space at both ends.
[[nodiscard]] std::string trimmed(std::string_view text);

// Differs when the file behind the name was written or replaced; a Secret volume replaces it by moving a symbolic link.
struct FileStamp {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t bytes = 0;
    int64_t changed_ns = 0;
    bool operator==(const FileStamp&) const = default;
};
// All zero where there is no such file.
[[nodiscard]] FileStamp stamp_of(const std::filesystem::path& file);

}  // namespace penstock::kube
