// SPDX-License-Identifier: Apache-2.0
#include "control/sync/manifest_source.hpp"

#include <algorithm>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::sync {
namespace {

using kube::ObjectKind;

// `before`: null at the first call, whose result reports the first list.
kube::Changes pool_changes(const kube::ObjectSet* before, const kube::ObjectSet& now) {
    kube::Changes changes;
    changes.pools_listed = before == nullptr;
    for (const auto& [name, pool] : now.pools) {
        const auto known = before == nullptr ? now.pools.end() : before->pools.find(name);
        if (before == nullptr || known == before->pools.end() || known->second != pool) {
            changes.pools.emplace(name, std::make_shared<const kube::AddressPool>(pool));
        }
    }
    if (before != nullptr) {
        for (const auto& [name, pool] : before->pools) {
            if (!now.pools.contains(name)) {
                changes.pools.emplace(name, nullptr);
            }
        }
    }
    return changes;
}

}  // namespace

// A document of unknown kind is counted with Services, the most frequent kind, or with pools.
const char* ManifestSource::collection_of(std::optional<ObjectKind> kind) const {
    if (kinds_ == Kinds::AddressPools) {
        return "addresspools";
    }
    return kind == ObjectKind::EndpointSlice ? "endpointslices"
           : kind == ObjectKind::Node        ? "nodes"
           : kind == ObjectKind::Namespace   ? "namespaces"
                                             : "services";
}

Result<std::unique_ptr<Source>> ManifestSource::open(const std::filesystem::path& path, WhenEmpty when_empty,
                                                     Kinds kinds) {
    PENSTOCK_TRY(auto watch, FileWatch::open(path));
    return std::unique_ptr<Source>(new ManifestSource(path, std::move(watch), when_empty, kinds));
}

ManifestSource::ManifestSource(std::filesystem::path path, FileWatch watch, WhenEmpty when_empty, Kinds kinds)
    : path_(std::move(path)),
      kinds_(kinds),
      watch_(std::move(watch)),
      folder_(path_, when_empty, kinds),
      store_(true, store_log_),
      status_{.source = (kinds == Kinds::Cluster ? "manifests " : "address pools ") + path_.string()} {}

bool ManifestSource::wait(int stop_descriptor) {
    if (std::exchange(first_, false)) {
        return true;
    }
    {
        const std::lock_guard lock(mutex_);
        busy_since_.reset();
    }
    const bool go_on = watch_.wait(stop_descriptor) == FileWatch::Wake::MayHaveChanged;
    const std::lock_guard lock(mutex_);
    busy_since_ = Clock::now();
    return go_on;
}

std::optional<kube::Changes> ManifestSource::take_changes() {
    const auto& contents = folder_.load(watch_.unfinished());
    report(contents);
    if (contents.objects == current_) {
        return std::nullopt;
    }
    const auto before = std::exchange(current_, contents.objects);
    if (kinds_ == Kinds::AddressPools) {
        log::get("kube").info("address pools: {} in {}", current_->pools.size(), path_.string());
        return pool_changes(before.get(), *current_);
    }
    log::get("kube").info("manifests: {} Services, {} EndpointSlices, {} Nodes", current_->services.size(),
                          current_->slices.size(), current_->nodes.size());
    store_.replace(*current_);
    return store_.take_changes();
}

void ManifestSource::report(const manifest::Folder::Contents& contents) {
    const auto news = problems_.update({contents.problems.begin(), contents.problems.end()});
    for (const manifest::Problem& problem : news.appeared) {
        log::get("kube").warn("{}", problem.to_string());
    }
    for (const manifest::Problem& problem : news.gone) {
        log::get("kube").info("no longer: {}", problem.to_string());
    }
    const std::lock_guard lock(mutex_);
    status_.trouble = contents.lost;
    if (contents.objects == nullptr ||
        (contents.objects == current_ && news.appeared.empty() && news.gone.empty())) {
        return;
    }
    read_at_ = Clock::now();
    for (const manifest::Problem& problem : news.appeared) {
        if (problem.severity == manifest::Problem::Severity::Error) {
            ++errors_[collection_of(problem.kind)];
        }
    }
    status_.collections.clear();
    const kube::ObjectSet& now = *contents.objects;
    if (kinds_ == Kinds::AddressPools) {
        status_.collections.push_back(describe(ObjectKind::AddressPool, now.pools.size(), contents));
        return;
    }
    for (const auto& [kind, objects] : {std::pair(ObjectKind::Service, now.services.size()),
                                        std::pair(ObjectKind::EndpointSlice, now.slices.size()),
                                        std::pair(ObjectKind::Node, now.nodes.size()),
                                        std::pair(ObjectKind::Namespace, now.namespaces.size())}) {
        status_.collections.push_back(describe(kind, objects, contents));
    }
}

kube::CollectionStatus ManifestSource::describe(ObjectKind kind, size_t objects,
                                                const manifest::Folder::Contents& contents) const {
    const std::string name = collection_of(kind);
    kube::CollectionStatus status{.kind = name,
                                  .path = path_.string(),
                                  .state = kube::CollectionStatus::State::Watching,
                                  .listed = true,
                                  .optional = kube::is_optional(kind),
                                  .objects = objects};
    if (const auto quarantined = contents.quarantined.find(kind); quarantined != contents.quarantined.end()) {
        status.quarantined = quarantined->second;
    }
    if (const auto errors = errors_.find(name); errors != errors_.end()) {
        status.errors["decode"] = errors->second;
    }
    const auto first = std::ranges::find_if(contents.problems, [&](const manifest::Problem& problem) {
        return problem.severity == manifest::Problem::Severity::Error &&
               (!problem.kind || problem.kind == kind);
    });
    if (first != contents.problems.end()) {
        status.last_error = first->to_string();
    }
    return status;
}

kube::SourceStatus ManifestSource::status() const {
    using std::chrono::duration_cast;
    using std::chrono::milliseconds;
    const std::lock_guard lock(mutex_);
    kube::SourceStatus status = status_;
    const auto now = Clock::now();
    status.heartbeat_age = busy_since_ ? duration_cast<milliseconds>(now - *busy_since_) : milliseconds(0);
    for (kube::CollectionStatus& each : status.collections) {
        each.last_event_age = duration_cast<milliseconds>(now - *read_at_);
        each.stale_age = milliseconds(0);
    }
    return status;
}

}  // namespace penstock::sync
