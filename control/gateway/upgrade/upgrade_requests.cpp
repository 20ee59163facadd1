// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/upgrade_requests.hpp"

#include <algorithm>
#include <utility>

#include "control/gateway/upgrade/upgrade_record.hpp"

namespace penstock::gateway {

Result<v1::UpgradeResponse> UpgradeRequests::request(const v1::UpgradeRequest& request,
                                                     const std::string& requested_by) {
    if (!send_) {
        return fail(Errc::Outdated,
                    "the upgrade is refused: penstockd has no supervisor; start it with --supervise on");
    }
    const std::lock_guard asking(asking_);
    {
        const std::lock_guard lock(mutex_);
        answer_.reset();
    }
    v1::UpgradeNote note;
    *note.mutable_request() = request;
    note.set_requested_by(requested_by);
    PENSTOCK_TRY_STATUS(send_(note));
    std::unique_lock lock(mutex_);
    answered_.wait_for(lock, kPatience, [this] { return answer_ || is_stopped_; });
    if (!answer_) {
        return fail(Errc::Unavailable, is_stopped_ ? "upgrade: penstockd is stopping"
                                                   : "upgrade: the supervisor did not answer");
    }
    if (answer_->number() == 0) {
        const bool is_known = answer_->refusal_code() <= static_cast<uint32_t>(Errc::Internal);
        return fail(is_known ? static_cast<Errc>(answer_->refusal_code()) : Errc::Internal,
                    answer_->refusal());
    }
    v1::UpgradeResponse response;
    response.set_number(answer_->number());
    return response;
}

std::optional<v1::Upgrade> UpgradeRequests::last() const {
    if (!send_) {
        return std::nullopt;
    }
    const uint64_t now = monotonic_us(std::chrono::steady_clock::now());
    const std::lock_guard lock(mutex_);
    v1::Upgrade out = record_.record();
    out.set_age_ms((now - std::min(now, record_.since_us())) / 1000);
    return out;
}

void UpgradeRequests::take_answer(const v1::UpgradeNote& answer) {
    {
        const std::lock_guard lock(mutex_);
        answer_ = answer;
    }
    answered_.notify_all();
}

void UpgradeRequests::take_record(const v1::UpgradeNote& record) {
    const std::lock_guard lock(mutex_);
    record_ = record;
}

void UpgradeRequests::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopped_ = true;
    }
    answered_.notify_all();
}

}  // namespace penstock::gateway
