// SPDX-License-Identifier: Apache-2.0
// Watches the file of --blocklist and calls `on_change` when its content changes. A file that is missing or
// has an error changes nothing: the blocked sources stay blocked, and each error is logged once. Runs its own
// thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/base/file_follower.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/prefix_set.hpp"

namespace penstock::gateway {

struct BlocklistWatchOptions {
    std::filesystem::path file;
    route::PrefixSet known;                              // the last content
    std::function<std::vector<IpAddr>()> own_addresses;  // the gateway's current addresses
    std::function<void(const route::PrefixSet& list)> on_change;
};

class BlocklistWatch {
 public:
    // The functions are called from start() and then from the thread.
    static Result<std::unique_ptr<BlocklistWatch>> start(BlocklistWatchOptions options);
    // Makes the thread read the file now, and log the result even if nothing changed. Any thread; does not
    // block.
    void reload() { follower_->reload(); }

 private:
    explicit BlocklistWatch(BlocklistWatchOptions options) : options_(std::move(options)) {}
    void look(FileFollower::Report report);

    BlocklistWatchOptions options_;
    std::string mistake_;                     // the last error logged; "" if the file was valid
    std::unique_ptr<FileFollower> follower_;  // last: its thread uses all members above
};

}  // namespace penstock::gateway
