// SPDX-License-Identifier: Apache-2.0
// Watches the file of --blocklist and calls `on_change` when its content changes. A file that is missing or
// has an error changes nothing: the blocked sources stay blocked, and each error is logged once. Runs its own
// thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control/base/file_watch.hpp"
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
    ~BlocklistWatch();
    BlocklistWatch(const BlocklistWatch&) = delete;
    BlocklistWatch& operator=(const BlocklistWatch&) = delete;

    // Makes the thread read the file now, and log the result even if nothing changed. Any thread; does not
    // block.
    void reload();

 private:
    BlocklistWatch(BlocklistWatchOptions options, FileWatch watch, int wake_descriptor);
    void run();
    enum class Report { Changes, Always };
    void look(Report report);
    void wake() const;

    BlocklistWatchOptions options_;
    FileWatch watch_;
    const int wake_descriptor_;
    std::string mistake_;  // the last error logged; "" if the file was valid
    std::atomic<bool> stopping_{false};
    std::thread thread_;  // last: it uses all members above
};

}  // namespace penstock::gateway
