// SPDX-License-Identifier: Apache-2.0
#include "control/sync/pool_watch.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace penstock::sync {

Result<std::unique_ptr<PoolWatch>> PoolWatch::start(const std::filesystem::path& path,
                                                    ManifestSource::WhenEmpty when_empty,
                                                    std::function<void(kube::Changes)> on_change) {
    PENSTOCK_TRY(auto source, ManifestSource::open(path, when_empty, ManifestSource::Kinds::AddressPools));
    const int wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_descriptor < 0) {
        return fail(Errc::Exhausted, std::string("eventfd: ") + std::strerror(errno));
    }
    return std::unique_ptr<PoolWatch>(
        new PoolWatch(std::move(source), wake_descriptor, std::move(on_change)));
}

PoolWatch::PoolWatch(std::unique_ptr<Source> source, int wake_descriptor,
                     std::function<void(kube::Changes)> on_change)
    : source_(std::move(source)),
      wake_descriptor_(wake_descriptor),
      on_change_(std::move(on_change)),
      thread_([this] { run(); }) {}

PoolWatch::~PoolWatch() {
    stopping_ = true;
    reload();
    thread_.join();
    ::close(wake_descriptor_);
}

void PoolWatch::reload() const {
    const uint64_t one = 1;
    // Cannot fail: the counter is far below its maximum.
    [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

void PoolWatch::run() {
    while (true) {
        if (!source_->wait(wake_descriptor_)) {
            uint64_t wakes = 0;
            [[maybe_unused]] const ssize_t got = ::read(wake_descriptor_, &wakes, sizeof wakes);
        }
        if (stopping_) {
            return;
        }
        if (auto changes = source_->take_changes()) {
            on_change_(std::move(*changes));
        }
    }
}

}  // namespace penstock::sync
