// SPDX-License-Identifier: Apache-2.0
// Files of the machine (/proc, /sys, /etc, /usr) below one folder. Tests pass a folder of their own. A file
// that is missing or cannot be read gives no value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::host {

class Root {
 public:
    explicit Root(std::filesystem::path folder = "/") : folder_(std::move(folder)) {}

    // The place of "/sys/class/net" below the folder. The leading '/' may be absent.
    [[nodiscard]] std::filesystem::path at(std::string_view path) const;
    // The content without blanks at its ends; at most kTextBytesMax of it.
    [[nodiscard]] std::optional<std::string> text(std::string_view path) const;
    // The content as a whole number.
    [[nodiscard]] std::optional<uint64_t> number(std::string_view path, int base = 10) const;
    // Names in a folder, sorted; empty if it cannot be read.
    [[nodiscard]] std::vector<std::string> names(std::string_view path) const;
    // The last component of a symbolic link's target: "vfio-pci" for a device's `driver`.
    [[nodiscard]] std::optional<std::string> link_name(std::string_view path) const;
    [[nodiscard]] bool exists(std::string_view path) const;

 private:
    std::filesystem::path folder_;
};

// Larger than any file that is read as text; /proc/net/tcp of a busy host is the largest.
inline constexpr size_t kTextBytesMax = size_t{64} << 20;

}  // namespace penstock::host
