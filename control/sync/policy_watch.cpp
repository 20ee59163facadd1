// SPDX-License-Identifier: Apache-2.0
#include "control/sync/policy_watch.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::sync {

Result<std::unique_ptr<PolicyWatch>> PolicyWatch::start(
    std::filesystem::path file, ExternalIpPolicy known,
    std::function<void(const ExternalIpPolicy&)> on_change) {
    PENSTOCK_TRY(auto watch, FileWatch::open(file));
    const int wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_descriptor < 0) {
        return fail(Errc::Exhausted, std::string("eventfd: ") + std::strerror(errno));
    }
    return std::unique_ptr<PolicyWatch>(new PolicyWatch(std::move(file), std::move(watch), wake_descriptor,
                                                        std::move(known), std::move(on_change)));
}

PolicyWatch::PolicyWatch(std::filesystem::path file, FileWatch watch, int wake_descriptor,
                         ExternalIpPolicy known, std::function<void(const ExternalIpPolicy&)> on_change)
    : file_(std::move(file)),
      watch_(std::move(watch)),
      wake_descriptor_(wake_descriptor),
      known_(std::move(known)),
      on_change_(std::move(on_change)),
      thread_([this] { run(); }) {}

PolicyWatch::~PolicyWatch() {
    stopping_ = true;
    wake();
    thread_.join();
    ::close(wake_descriptor_);
}

void PolicyWatch::wake() const {
    const uint64_t one = 1;
    // Cannot fail: the counter is far below its maximum.
    [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

void PolicyWatch::reload() {
    wake();
}

void PolicyWatch::run() {
    // The file may have changed between the first read and the start of the watch.
    look(Report::Changes);
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
        // A partly written file can be valid YAML and grant less than intended.
        if (!watch_.unfinished().contains(file_.filename().string())) {
            look(report);
        }
    }
}

void PolicyWatch::look(Report report) {
    auto policy = read_external_ip_policy(file_);
    if (!policy) {
        if (report == Report::Always || mistake_ != policy.error().what) {
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
        if (report == Report::Always) {
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
