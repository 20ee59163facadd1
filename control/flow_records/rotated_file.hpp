// SPDX-License-Identifier: Apache-2.0
// A file that lines are appended to, rotated by size and by time: FILE becomes FILE.1, FILE.1 becomes FILE.2,
// and so on; the oldest one is removed. Time is an argument. Blocks as long as the disk does.
//
// Two processes may write to one file (an upgrade with overlap), and another program may rename it
// (logrotate): a file that is no longer at its path is left, and a new one is begun there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control/base/descriptor.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::flow_records {

struct RotationLimits {
    uint64_t bytes_max = 64U << 20;  // of one file; a file with a single longer write may exceed it
    uint32_t kept = 24;              // rotated files, besides the current one
};

class RotatedFile {
 public:
    RotatedFile(std::string path, RotationLimits limits);

    // Appends whole lines, in a new file if the size would exceed its limit, or if the last write was in
    // another interval of the clock (multiples of `interval_s` since 1970). Creates the folders of the path
    // with mode 0750, the file with mode 0640. After an error (Unavailable, names path and step) the file has
    // none of the lines.
    [[nodiscard]] Status append(std::string_view lines, uint32_t interval_s, int64_t now_s);
    // The next append() opens the file anew.
    void reopen() { file_ = Descriptor(); }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
    [[nodiscard]] Status open();
    // The open file is the one at the path.
    [[nodiscard]] bool is_in_place() const;
    [[nodiscard]] Status rotate();
    [[nodiscard]] std::unexpected<Error> failed(const std::string& step) const;

    const std::string path_;
    const RotationLimits limits_;
    Descriptor file_;
    uint64_t bytes_ = 0;
    int64_t last_write_s_ = 0;
};

}  // namespace penstock::flow_records
