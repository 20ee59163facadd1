// SPDX-License-Identifier: Apache-2.0
// Follows the file or folder of --address-pools and reports the pools each time they change. An invalid
// document keeps its last good version, and a missing or empty path keeps all pools: addresses that were
// given out stay in use (LB-014, LB-015). Mistakes are logged once. Has its own thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "control/kube/changes.hpp"
#include "control/kube/source_status.hpp"
#include "control/sync/manifest_source.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

class PoolWatch {
 public:
    // `on_change` is called from the thread, with pools only: first with all pools and pools_listed, later
    // with the difference. Nothing is reported until the path was readable once. Does not fail if the path
    // does not exist yet. Error: the path cannot be watched.
    static Result<std::unique_ptr<PoolWatch>> start(const std::filesystem::path& path,
                                                    ManifestSource::WhenEmpty when_empty,
                                                    std::function<void(kube::Changes)> on_change);
    ~PoolWatch();
    PoolWatch(const PoolWatch&) = delete;
    PoolWatch& operator=(const PoolWatch&) = delete;

    // Makes the thread read the path now. Any thread; does not block.
    void reload() const;
    // One collection, "addresspools", once the path was readable. Any thread.
    [[nodiscard]] kube::SourceStatus status() const { return source_->status(); }

 private:
    PoolWatch(std::unique_ptr<Source> source, int wake_descriptor,
              std::function<void(kube::Changes)> on_change);
    void run();

    const std::unique_ptr<Source> source_;
    const int wake_descriptor_;
    const std::function<void(kube::Changes)> on_change_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace penstock::sync
