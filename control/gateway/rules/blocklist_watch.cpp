// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/rules/blocklist_watch.hpp"

#include <utility>

#include "control/gateway/rules/blocklist.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {

Result<std::unique_ptr<BlocklistWatch>> BlocklistWatch::start(BlocklistWatchOptions options) {
    std::unique_ptr<BlocklistWatch> watch(new BlocklistWatch(std::move(options)));
    PENSTOCK_TRY(watch->follower_,
                 FileFollower::start(watch->options_.file, [self = watch.get()](FileFollower::Report report) {
                     self->look(report);
                 }));
    return watch;
}

void BlocklistWatch::look(FileFollower::Report report) {
    auto list = read_blocklist(options_.file, options_.own_addresses());
    auto& logger = log::get("control");
    if (!list) {
        if (report == FileFollower::Report::Always || mistake_ != list.error().what) {
            mistake_ = list.error().what;
            logger.error("blocked sources are unchanged: {}", mistake_);
        }
        return;
    }
    if (!std::exchange(mistake_, {}).empty()) {
        logger.info("{} can be read again", options_.file.string());
    }
    if (*list == options_.known) {
        if (report == FileFollower::Report::Always) {
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
