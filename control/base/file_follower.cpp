// SPDX-License-Identifier: Apache-2.0
#include "control/base/file_follower.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock {

Result<std::unique_ptr<FileFollower>> FileFollower::start(const std::filesystem::path& file, Look look) {
    PENSTOCK_TRY(auto watch, FileWatch::open(file));
    const int wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_descriptor < 0) {
        return fail(Errc::Exhausted, std::string("eventfd: ") + std::strerror(errno));
    }
    return std::unique_ptr<FileFollower>(
        new FileFollower(file.filename().string(), std::move(look), std::move(watch), wake_descriptor));
}

FileFollower::FileFollower(std::string name, Look look, FileWatch watch, int wake_descriptor)
    : name_(std::move(name)),
      look_(std::move(look)),
      watch_(std::move(watch)),
      wake_descriptor_(wake_descriptor) {
    // The file may have changed between the caller's reading and the start of the watch. It is read here and
    // not on the thread: by then a write may have begun, with its first event not yet reported.
    look_(Report::Changes);
    thread_ = std::thread([this] { run(); });
}

FileFollower::~FileFollower() {
    stopping_ = true;
    wake();
    thread_.join();
    ::close(wake_descriptor_);
}

void FileFollower::wake() const {
    const uint64_t one = 1;
    // Cannot fail: the counter is far from its maximum.
    [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

void FileFollower::reload() {
    wake();
}

void FileFollower::run() {
    for (;;) {
        auto report = Report::Changes;
        if (watch_.wait(wake_descriptor_) == FileWatch::Wake::Stopped) {
            uint64_t wakes = 0;
            [[maybe_unused]] const ssize_t got = ::read(wake_descriptor_, &wakes, sizeof wakes);
            if (stopping_) {
                return;
            }
            watch_.catch_up();
            report = Report::Always;
        }
        if (!watch_.unfinished().contains(name_)) {
            look_(report);
        }
    }
}

}  // namespace penstock
