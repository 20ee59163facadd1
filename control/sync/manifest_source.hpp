// SPDX-License-Identifier: Apache-2.0
// A folder of manifests as a source: read when it changes, and compared with its previous content. Either the
// objects of a cluster, or address pools (see PoolWatch).
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "control/base/file_watch.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/log_lines.hpp"
#include "control/manifest/folder.hpp"
#include "control/sync/once.hpp"
#include "control/sync/source.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

class ManifestSource final : public Source {
 public:
    using WhenEmpty = manifest::Folder::WhenEmpty;
    using Kinds = manifest::Folder::Kinds;

    [[nodiscard]] static Result<std::unique_ptr<Source>> open(const std::filesystem::path& path,
                                                              WhenEmpty when_empty,
                                                              Kinds kinds = Kinds::Cluster);

    [[nodiscard]] bool wait(int stop_descriptor) override;
    [[nodiscard]] std::optional<kube::Changes> take_changes() override;
    [[nodiscard]] kube::SourceStatus status() const override;

 private:
    using Clock = std::chrono::steady_clock;

    ManifestSource(std::filesystem::path path, FileWatch watch, WhenEmpty when_empty, Kinds kinds);
    void report(const manifest::Folder::Contents& contents);
    // The collection that counts a document of this kind.
    [[nodiscard]] const char* collection_of(std::optional<kube::ObjectKind> kind) const;
    // Call with the lock held.
    [[nodiscard]] kube::CollectionStatus describe(kube::ObjectKind kind, size_t objects,
                                                  const manifest::Folder::Contents& contents) const;

    const std::filesystem::path path_;
    const Kinds kinds_;
    FileWatch watch_;
    manifest::Folder folder_;
    kube::LogLines store_log_;  // stays empty: broken manifests are reported by the folder
    kube::Store store_;
    bool first_ = true;
    std::shared_ptr<const kube::ObjectSet> current_;
    Once<manifest::Problem> problems_;

    mutable std::mutex mutex_;  // guards the members below
    kube::SourceStatus status_;
    std::map<std::string, uint64_t> errors_;       // documents that could not be read, by collection
    std::optional<Clock::time_point> busy_since_;  // unset while waiting
    std::optional<Clock::time_point> read_at_;
};

}  // namespace penstock::sync
