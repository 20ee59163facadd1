// SPDX-License-Identifier: Apache-2.0
// Keeps a drain over a restart: a file beside the last good configuration that exists while the gateway is
// drained.
#pragma once

#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::gateway {

class DrainFile {
 public:
    // `state_file` as in Options; "": the drain is not saved.
    explicit DrainFile(const std::string& state_file)
        : path_(state_file.empty() ? "" : state_file + ".drained") {}

    // A file that cannot be read counts as present: a gateway in maintenance must not return to service by
    // itself.
    [[nodiscard]] bool is_drained() const;
    // Synced to disk. Unsupported: no state file is configured. Unavailable: the step that failed and the
    // reason.
    Status set(bool drained) const;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
    std::string path_;
};

}  // namespace penstock::gateway
