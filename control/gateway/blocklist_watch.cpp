#include "control/gateway/blocklist_watch.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "control/gateway/blocklist.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {

Result<std::unique_ptr<BlocklistWatch>> BlocklistWatch::start(BlocklistWatchOptions options) {
    auto watch = manifest::Watch::open(options.file);
    if (!watch) {
        return std::unexpected(std::move(watch).error());
    }
    const int stop_descriptor = ::eventfd(0, EFD_CLOEXEC);
    if (stop_descriptor < 0) {
        return fail(Errc::Exhausted, std::string("eventfd: ") + std::strerror(errno));
    }
    return std::unique_ptr<BlocklistWatch>(new BlocklistWatch(std::move(options), std::move(*watch), stop_descriptor));
}

BlocklistWatch::BlocklistWatch(BlocklistWatchOptions options, manifest::Watch watch, int stop_descriptor)
    : options_(std::move(options)), watch_(std::move(watch)), stop_descriptor_(stop_descriptor) {
    // Between the caller's reading and the first watching the file may have changed. Here and not on the thread: by then a write may have
    // begun that its first event has yet to report.
    look();
    thread_ = std::thread([this] { run(); });
}

BlocklistWatch::~BlocklistWatch() {
    const uint64_t one = 1;
    // Cannot fail: the counter is far from its end.
    [[maybe_unused]] const ssize_t written = ::write(stop_descriptor_, &one, sizeof one);
    thread_.join();
    ::close(stop_descriptor_);
}

void BlocklistWatch::run() {
    while (watch_.wait(stop_descriptor_) == manifest::Watch::Wake::MayHaveChanged) {
        // Half a list is a whole one to the parser, and blocks less than was meant.
        if (!watch_.unfinished().contains(options_.file.filename().string())) {
            look();
        }
    }
}

void BlocklistWatch::look() {
    auto list = read_blocklist(options_.file, options_.own_addresses());
    auto& logger = log::get("control");
    if (!list) {
        if (mistake_ != list.error().what) {
            mistake_ = list.error().what;
            logger.error("sources stay blocked as they were: {}", mistake_);
        }
        return;
    }
    if (!std::exchange(mistake_, {}).empty()) {
        logger.info("{} can be read again", options_.file.string());
    }
    if (*list == options_.known) {
        return;
    }
    options_.known = std::move(*list);
    logger.info("{} prefixes are blocked, as {} has them now", options_.known.prefixes().size(), options_.file.string());
    options_.tell(options_.known);
}

}  // namespace penstock::gateway
