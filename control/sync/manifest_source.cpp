#include "control/sync/manifest_source.hpp"

#include <utility>

#include "control/log/log.hpp"

namespace penstock::sync {
namespace {

kube::CollectionStatus collection(const char* kind, const std::string& path, size_t objects) {
    return {.kind = kind, .path = path, .state = kube::CollectionStatus::State::Watching, .listed = true, .objects = objects};
}

}  // namespace

Result<std::unique_ptr<Source>> ManifestSource::open(const std::filesystem::path& path) {
    auto watch = manifest::Watch::open(path);
    if (!watch) {
        return std::unexpected(watch.error());
    }
    return std::unique_ptr<Source>(new ManifestSource(path, std::move(*watch)));
}

ManifestSource::ManifestSource(std::filesystem::path path, manifest::Watch watch)
    : path_(std::move(path)),
      watch_(std::move(watch)),
      folder_(path_),
      store_(true, store_log_),
      status_{.source = "manifests " + path_.string()} {}

bool ManifestSource::wait(int stop_descriptor) {
    if (std::exchange(first_, false)) {
        return true;
    }
    {
        const std::lock_guard lock(mutex_);
        busy_since_.reset();
    }
    const bool go_on = watch_.wait(stop_descriptor) == manifest::Watch::Wake::MayHaveChanged;
    const std::lock_guard lock(mutex_);
    busy_since_ = Clock::now();
    return go_on;
}

std::optional<kube::Changes> ManifestSource::take_changes() {
    const auto& contents = folder_.load(watch_.unfinished());
    tell(contents);
    if (contents.objects == current_) {
        return std::nullopt;
    }
    current_ = contents.objects;
    log::get("kube").info("manifests: {} Services, {} EndpointSlices, {} Nodes", current_->services.size(), current_->slices.size(),
                          current_->nodes.size());
    store_.replace(*current_);
    return store_.take_changes();
}

void ManifestSource::tell(const manifest::Folder::Contents& contents) {
    const auto news = problems_.update({contents.problems.begin(), contents.problems.end()});
    for (const manifest::Problem& problem : news.appeared) {
        log::get("kube").warn("{}", problem.to_string());
    }
    for (const manifest::Problem& problem : news.gone) {
        log::get("kube").info("no longer: {}", problem.to_string());
    }
    const std::lock_guard lock(mutex_);
    if (contents.objects == nullptr || (contents.objects == current_ && news.appeared.empty() && news.gone.empty())) {
        return;
    }
    read_at_ = Clock::now();
    status_.collections = {collection("services", path_.string(), contents.objects->services.size()),
                           collection("endpointslices", path_.string(), contents.objects->slices.size()),
                           collection("nodes", path_.string(), contents.objects->nodes.size())};
    if (!contents.problems.empty()) {
        for (kube::CollectionStatus& each : status_.collections) {
            each.last_error = contents.problems.front().to_string();
        }
    }
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
