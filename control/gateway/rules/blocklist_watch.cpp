// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/rules/blocklist_watch.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "control/gateway/rules/blocklist.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {

Result<std::unique_ptr<BlocklistWatch>> BlocklistWatch::start(BlocklistWatchOptions options) {
    PENSTOCK_TRY(auto watch, FileWatch::open(options.file));
    const int wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_descriptor < 0) {
        return fail(Errc::Exhausted, std::string("eventfd: ") + std::strerror(errno));
    }
    return std::unique_ptr<BlocklistWatch>(
        new BlocklistWatch(std::move(options), std::move(watch), wake_descriptor));
}

BlocklistWatch::BlocklistWatch(BlocklistWatchOptions options, FileWatch watch, int wake_descriptor)
    : options_(std::move(options)), watch_(std::move(watch)), wake_descriptor_(wake_descriptor) {
    // The file may have changed between the caller's reading and the start of the watch. It is read here and
    // not on the thread: by then a write may have begun, with its first event not yet reported.
    look(Report::Changes);
    thread_ = std::thread([this] { run(); });
}

BlocklistWatch::~BlocklistWatch() {
    stopping_ = true;
    wake();
    thread_.join();
    ::close(wake_descriptor_);
}

void BlocklistWatch::wake() const {
    const uint64_t one = 1;
    // Cannot fail: the counter is far from its maximum.
    [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

void BlocklistWatch::reload() {
    wake();
}

void BlocklistWatch::run() {
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
        // An incomplete file parses as a complete list that blocks less than intended.
        if (!watch_.unfinished().contains(options_.file.filename().string())) {
            look(report);
        }
    }
}

void BlocklistWatch::look(Report report) {
    auto list = read_blocklist(options_.file, options_.own_addresses());
    auto& logger = log::get("control");
    if (!list) {
        if (report == Report::Always || mistake_ != list.error().what) {
            mistake_ = list.error().what;
            logger.error("blocked sources are unchanged: {}", mistake_);
        }
        return;
    }
    if (!std::exchange(mistake_, {}).empty()) {
        logger.info("{} can be read again", options_.file.string());
    }
    if (*list == options_.known) {
        if (report == Report::Always) {
            logger.info("{}: unchanged, {} prefixes are blocked", options_.file.string(),
                        options_.known.prefixes().size());
        }
        return;
    }
    options_.known = std::move(*list);
    logger.info("{} prefixes are blocked, read from {}", options_.known.prefixes().size(),
                options_.file.string());
    options_.on_change(options_.known);
}

}  // namespace penstock::gateway
