// SPDX-License-Identifier: Apache-2.0
#include "control/kube/lease/leader_elector.hpp"

#include <algorithm>
#include <utility>

namespace penstock::kube {
namespace {

// A Lease is less than a kilobyte; managedFields may add some.
constexpr size_t kLeaseBytesMax = 64 << 10;

}  // namespace

LeaderElector::LeaderElector(Settings settings, Transport& transport, WriteLimiter& limiter,
                             RandomSource random)
    : settings_(std::move(settings)),
      transport_(transport),
      limiter_(limiter),
      random_(std::move(random)),
      response_(kLeaseBytesMax) {}

LeaderElector::~LeaderElector() {
    if (request_) {
        transport_.cancel(*request_);
    }
}

void LeaderElector::advance(Time now, WallTime wall) {
    if (leads_ && now >= leads_until_) {
        step_down("it could not be renewed for " + std::to_string(kRenewDeadline.count()) + " s");
    }
    if (request_ && response_.is_complete()) {
        request_.reset();
        process_response(now, wall);
    }
    if (!request_ && step_ == Step::Idle && (is_releasing_ || now >= next_round_) &&
        now >= limiter_.next_at(WriteLane::Lease)) {
        start_round(now, wall);
    }
    publish(now);
}

void LeaderElector::start_round(Time now, WallTime wall) {
    if (is_releasing_) {
        if (!is_held()) {
            step_ = Step::Released;
            return;
        }
        return patch(Step::Release, lease_release_body(*lease_, wall), now);
    }
    if (is_held() && leads_) {
        return patch(Step::Renew, lease_renew_body(*lease_, settings_.identity, wall), now);
    }
    send(Step::Read, {.target = target(), .timeout = kLeaseTimeout}, now);
}

std::string LeaderElector::target() const {
    return lease_target(settings_.lease.namespace_name, settings_.lease.name);
}

bool LeaderElector::is_held() const {
    return lease_ && lease_->record.holder == settings_.identity;
}

void LeaderElector::patch(Step step, std::string body, Time now) {
    send(step,
         {.method = "PATCH",
          .target = target(),
          .body = std::move(body),
          .content_type = "application/merge-patch+json",
          .timeout = kLeaseTimeout},
         now);
}

void LeaderElector::send(Step step, Request request, Time now) {
    static_cast<void>(limiter_.take(WriteLane::Lease, now));
    step_ = step;
    sent_at_ = now;
    response_.reset();
    request_ = transport_.start(std::move(request), response_);
}

void LeaderElector::process_response(Time now, WallTime wall) {
    if (response_.is_success()) {
        return process_success(now, wall);
    }
    process_refusal(now, wall);
}

void LeaderElector::process_success(Time now, WallTime wall) {
    const Step step = std::exchange(step_, Step::Idle);
    if (step == Step::Release) {
        step_ = Step::Released;
        return;
    }
    auto lease = parse_lease(tree_, response_.body());
    if (!lease) {
        lease_.reset();
        ++counts_.failures;
        report_refusal(lease.error().what);
        return end_round(now);
    }
    if (!std::exchange(refused_why_, {}).empty()) {
        log_.info("the Lease is available again");
    }
    observe(std::move(*lease), now);
    if (step != Step::Read) {
        // A response to a write shows the record as written, unless another process has written since: then
        // its version is newer than that write, and the next renewal is refused.
        lead(sent_at_);
        return end_round(now);
    }
    if (leads_ && !is_held()) {
        step_down("the Lease has another holder");
    }
    if (is_releasing_ || !is_claimable(now)) {
        return end_round(now);
    }
    patch(leads_ ? Step::Renew : Step::Claim,
          leads_ ? lease_renew_body(*lease_, settings_.identity, wall)
                 : lease_claim_body(*lease_, settings_.identity, wall),
          now);
}

void LeaderElector::process_refusal(Time now, WallTime wall) {
    const Step step = std::exchange(step_, Step::Idle);
    const int status = response_.status();
    if (step == Step::Release) {
        // Nobody waits for it: the Lease expires.
        step_ = Step::Released;
        return;
    }
    if (status == 401) {
        transport_.credentials_rejected();
    }
    if (status == 404 && step != Step::Create && !is_releasing_) {
        lease_.reset();
        unchanged_since_.reset();
        if (step == Step::Renew) {
            step_down("the Lease was deleted");
        }
        return send(Step::Create,
                    {.method = "POST",
                     .target = lease_target(settings_.lease.namespace_name),
                     .body = lease_create_body(settings_.lease, settings_.identity, wall),
                     .content_type = "application/json",
                     .timeout = kLeaseTimeout},
                    now);
    }
    if (status == 409) {
        // Another process wrote the record, or an earlier write of this process whose response was lost. The
        // next round reads it; a leader stays leader until its time is over, or that record names another.
        lease_.reset();
        unchanged_since_.reset();
        return end_round(now);
    }
    ++counts_.failures;
    if (response_.may_work_later()) {
        // A write may have arrived although its response did not.
        if (step != Step::Read) {
            lease_.reset();
            unchanged_since_.reset();
        }
        return end_round(now);
    }
    report_refusal(response_.what());
    end_round(now);
    if (!leads_) {  // a leader has no time for a longer pause
        next_round_ = now + kLeaseRefusedPause;
    }
}

void LeaderElector::observe(Lease lease, Time now) {
    if (!lease_ || !unchanged_since_ || lease_->record != lease.record) {
        unchanged_since_ = now;
    }
    counts_.transitions = static_cast<uint64_t>(lease.record.transitions);
    counts_.holder = lease.record.holder;
    lease_ = std::move(lease);
}

bool LeaderElector::is_claimable(Time now) const {
    return lease_->record.holder.empty() || is_held() || now >= *unchanged_since_ + lease_->record.duration;
}

void LeaderElector::lead(Time since) {
    if (is_releasing_) {
        return;
    }
    leads_until_ = std::max(leads_until_, since + kRenewDeadline);
    if (!std::exchange(leads_, true)) {
        ++term_;
        ++counts_.acquired;
        log_.info("this process writes addresses and status: it holds the Lease " +
                  settings_.lease.namespace_name + "/" + settings_.lease.name);
    }
}

void LeaderElector::step_down(const std::string& why) {
    leads_until_ = Time::min();
    if (std::exchange(leads_, false)) {
        ++counts_.lost;
        log_.warn("this process no longer writes addresses and status: " + why);
    }
}

void LeaderElector::end_round(Time now) {
    const auto period = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(kRetryPeriod) * (1.0 + kLeaseJitter * random_()));
    next_round_ = now + period;
}

void LeaderElector::report_refusal(const std::string& why) {
    if (std::exchange(refused_why_, why) != why) {
        log_.warn(
            "the Lease " + settings_.lease.namespace_name + "/" + settings_.lease.name +
            " cannot be used, and no address is given to a Service: " + transport_.without_secrets(why));
    }
}

std::optional<LeaderElector::Time> LeaderElector::next_wake() const {
    if (step_ == Step::Released) {
        return std::nullopt;
    }
    Time due = request_ ? Time::max() : std::max(next_round_, limiter_.next_at(WriteLane::Lease));
    if (leads_) {
        due = std::min(due, leads_until_);
    }
    return due == Time::max() ? std::nullopt : std::optional(due);
}

void LeaderElector::release() {
    is_releasing_ = true;
    leads_until_ = Time::min();
    leads_ = false;
}

void LeaderElector::publish(Time now) {
    counts_.is_leader = is_leader(now);
    const std::lock_guard lock(mutex_);
    published_ = counts_;
}

LeadershipStatus LeaderElector::status() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

}  // namespace penstock::kube
