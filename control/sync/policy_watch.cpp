// SPDX-License-Identifier: Apache-2.0
#include "control/sync/policy_watch.hpp"

#include "control/log/log.hpp"

namespace penstock::sync {

Result<std::unique_ptr<PolicyWatch>> PolicyWatch::start(
    std::filesystem::path file, ExternalIpPolicy known,
    std::function<void(const ExternalIpPolicy&)> on_change) {
    std::unique_ptr<PolicyWatch> watch(
        new PolicyWatch(std::move(file), std::move(known), std::move(on_change)));
    // A partly written file can be valid YAML and grant less than intended: FileFollower waits for its end.
    PENSTOCK_TRY(watch->follower_,
                 FileFollower::start(watch->file_, [self = watch.get()](FileFollower::Report report) {
                     self->look(report);
                 }));
    return watch;
}

void PolicyWatch::look(FileFollower::Report report) {
    auto policy = read_external_ip_policy(file_);
    if (!policy) {
        if (report == FileFollower::Report::Always || mistake_ != policy.error().what) {
            mistake_ = policy.error().what;
            log::get("sync").error("external IP policy not reloaded, the last valid one stays in use: {}",
                                   mistake_);
        }
        return;
    }
    if (!std::exchange(mistake_, {}).empty()) {
        log::get("sync").info("{} is valid again", file_.string());
    }
    if (*policy == known_) {
        if (report == FileFollower::Report::Always) {
            log::get("sync").info("{}: unchanged, {} rules grant external IPs", file_.string(),
                                  known_.size());
        }
        return;
    }
    known_ = std::move(*policy);
    log::get("sync").info("external IP policy reloaded: {} rules in {}", known_.size(), file_.string());
    on_change_(known_);
}

}  // namespace penstock::sync
