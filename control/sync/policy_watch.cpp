#include "control/sync/policy_watch.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::sync {

Result<std::unique_ptr<PolicyWatch>> PolicyWatch::start(std::filesystem::path file, ExternalIpPolicy known,
                                                        std::function<void(const ExternalIpPolicy&)> tell) {
    auto watch = manifest::Watch::open(file);
    if (!watch) {
        return std::unexpected(std::move(watch).error());
    }
    const int stop_descriptor = ::eventfd(0, EFD_CLOEXEC);
    if (stop_descriptor < 0) {
        return fail(Errc::Exhausted, std::string("eventfd: ") + std::strerror(errno));
    }
    return std::unique_ptr<PolicyWatch>(
        new PolicyWatch(std::move(file), std::move(*watch), stop_descriptor, std::move(known), std::move(tell)));
}

PolicyWatch::PolicyWatch(std::filesystem::path file, manifest::Watch watch, int stop_descriptor, ExternalIpPolicy known,
                         std::function<void(const ExternalIpPolicy&)> tell)
    : file_(std::move(file)),
      watch_(std::move(watch)),
      stop_descriptor_(stop_descriptor),
      known_(std::move(known)),
      tell_(std::move(tell)),
      thread_([this] { run(); }) {}

PolicyWatch::~PolicyWatch() {
    const uint64_t one = 1;
    // Cannot fail: the counter is far from its end.
    [[maybe_unused]] const ssize_t written = ::write(stop_descriptor_, &one, sizeof one);
    thread_.join();
    ::close(stop_descriptor_);
}

void PolicyWatch::run() {
    // Between the first reading and the first watching it may have changed.
    look();
    while (watch_.wait(stop_descriptor_) == manifest::Watch::Wake::MayHaveChanged) {
        // Half a file may be a whole one to YAML, and grant less than was meant.
        if (!watch_.unfinished().contains(file_.filename().string())) {
            look();
        }
    }
}

void PolicyWatch::look() {
    auto policy = read_external_ip_policy(file_);
    if (!policy) {
        if (mistake_ != policy.error().what) {
            mistake_ = policy.error().what;
            log::get("sync").error("external IPs stay granted as they were: {}", mistake_);
        }
        return;
    }
    if (!std::exchange(mistake_, {}).empty()) {
        log::get("sync").info("{} can be read again", file_.string());
    }
    if (*policy == known_) {
        return;
    }
    known_ = std::move(*policy);
    log::get("sync").info("external IPs are granted by the {} rules that {} has now", known_.size(), file_.string());
    tell_(known_);
}

}  // namespace penstock::sync
