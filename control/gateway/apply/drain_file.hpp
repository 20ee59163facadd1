// Remembers a drain over a restart: a file beside the last good configuration, which is there while the gateway is drained.
#pragma once

#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::gateway {

class DrainFile {
 public:
    // `state_file` as in Options; "": nothing is remembered.
    explicit DrainFile(const std::string& state_file)
        : path_(state_file.empty() ? "" : state_file + ".drained") {}

    // A file that cannot be read counts as there: a gateway in maintenance must not come back into service by itself.
    [[nodiscard]] bool is_drained() const;
    // Synced. Unsupported: there is no state file. Unavailable: the step and the reason.
    Status set(bool drained) const;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
    std::string path_;
};

}  // namespace penstock::gateway
