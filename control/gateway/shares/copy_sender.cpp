// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/copy_sender.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "control/base/host_port.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::gateway {
namespace {

// A pause is not shorter: waking up costs more than the steps of a small pause.
constexpr std::chrono::milliseconds kPauseMin{5};
// The longest time without a message: a stream without a change is no silence (CopyChannel::kSilence). With a
// report about shares on links it is a fifth of LinkHolder::kSilence.
constexpr std::chrono::milliseconds kQuietMax{1'000};
constexpr std::chrono::milliseconds kQuietMaxOnLinks{100};
static_assert(kQuietMaxOnLinks * 5 == LinkHolder::kSilence);

// "10.0.0.1:7443" -> "10.0.0.1"; as certificates write it.
std::string host_of(const std::string& address) {
    const std::string host = split_host_port(address).host;
    const auto parsed = IpAddr::parse(host);
    return parsed ? parsed->to_string() : host;
}

}  // namespace

Status may_copy(const GatewayShares& own, const std::string& other) {
    const shares::Plan& plan = own.plan();
    const std::string version = " (plan of shares, version " + std::to_string(plan.version) + ")";
    for (const std::string& name : {own.gateway_name(), other}) {
        const shares::Gateway* gateway = plan.gateway(name);
        if (gateway == nullptr) {
            return fail(Errc::NotFound, "gateway " + name + " is not in the plan" + version);
        }
        if (gateway->address.empty()) {
            return fail(Errc::PermissionDenied, "gateway " + name + " has no address=" + version);
        }
    }
    if (plan.common_shares(own.gateway_name(), other) == 0) {
        return fail(Errc::PermissionDenied, "gateways " + own.gateway_name() + " and " + other +
                                                " have no share in common" + version);
    }
    return {};
}

Result<std::vector<std::string>> CopySender::certificate_names_of(const std::string& gateway) const {
    const std::shared_ptr<const GatewayShares> own = options_.shares();
    PENSTOCK_TRY_STATUS(may_copy(*own, gateway));
    return std::vector<std::string>{gateway, host_of(own->plan().gateway(gateway)->address)};
}

// Counts the streams of a gateway, and has the selection of one.
class CopySender::Stream {
 public:
    Stream(CopySender& sender, std::string gateway) : sender_(sender), gateway_(std::move(gateway)) {
        const std::lock_guard lock(sender_.mutex_);
        ++sender_.sent_[gateway_].streams;
    }
    ~Stream() {
        const std::lock_guard lock(sender_.mutex_);
        Sent& sent = sender_.sent_[gateway_];
        --sent.streams;
        sent.held = sent.as_heir = 0;
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void note(uint64_t records, uint64_t held) {
        const std::lock_guard lock(sender_.mutex_);
        Sent& sent = sender_.sent_[gateway_];
        sent.records += records;
        sent.held = held;
    }
    // Errors: the plan in force gives the gateway no copies.
    Status follow_plan() {
        std::shared_ptr<const GatewayShares> now = sender_.options_.shares();
        if (now == own_) {
            return {};
        }
        PENSTOCK_TRY_STATUS(may_copy(*now, gateway_));
        const std::string& address = now->plan().gateway(gateway_)->address;
        if (own_ != nullptr && own_->plan().gateway(gateway_)->address != address) {
            return fail(Errc::PermissionDenied,
                        "gateway " + gateway_ + " has another address by the plan: it must call again");
        }
        own_ = std::move(now);
        shares_ = own_->plan().common_shares(own_->gateway_name(), gateway_);
        return {};
    }
    void end_pass() {
        const std::lock_guard lock(sender_.mutex_);
        sender_.sent_[gateway_].as_heir = std::exchange(as_heir_, 0);
    }
    [[nodiscard]] copies::Sweep::Selection selects(const IpAddr& vip, const IpAddr& client) {
        const uint8_t share = own_->share_of(vip, client);
        if ((shares_ >> share & 1) == 0) {
            return copies::Sweep::Selection::None;
        }
        if (own_->part_in(share).role != shares::Role::Heir) {
            return copies::Sweep::Selection::Old;
        }
        ++as_heir_;
        return copies::Sweep::Selection::All;
    }
    [[nodiscard]] v1::ConnectionCopies message(const std::vector<std::byte>& records) const {
        v1::ConnectionCopies message;
        message.set_format(kCopyFormat);
        message.set_gateway(own_->gateway_name());
        message.set_plan_version(own_->plan().version);
        message.set_records(records.data(), records.size());
        const bool has_returned = sender_.options_.has_returned();
        message.set_has_returned(has_returned);
        message.set_takes_strays(has_returned && !sender_.options_.drains());
        if (sender_.options_.holder) {
            const HolderReport report = sender_.options_.holder();
            v1::HolderReport& out = *message.mutable_holder();
            out.set_plan_version(report.plan_version);
            out.set_able(report.able);
            out.set_ready(report.ready);
            out.set_held(report.held);
            out.set_served(report.served);
            for (const MacAddr& mac : report.macs) {
                out.add_macs(mac.bytes.data(), mac.bytes.size());
            }
        }
        return message;
    }

 private:
    CopySender& sender_;
    const std::string gateway_;
    std::shared_ptr<const GatewayShares> own_;
    uint64_t shares_ = 0;
    uint64_t as_heir_ = 0;  // in this pass
};

// False: the receiver has left.
bool CopySender::give_back(Stream& stream, const std::string& gateway, rpc::CopyReceiver& receiver) const {
    std::vector<std::byte> records;
    uint32_t from = 0;
    for (bool has_more = true; has_more;) {
        records.clear();
        has_more = options_.give_back(gateway, from, records);
        if (records.empty()) {
            continue;
        }
        v1::ConnectionCopies message = stream.message(records);
        message.set_given_back(true);
        if (!receiver.send(message)) {
            return false;
        }
        stream.note(copies::count_records(records), 0);
    }
    return true;
}

Status CopySender::send_copies(const v1::FollowConnectionsRequest& request, rpc::CopyReceiver& receiver) {
    const auto min_age = static_cast<int32_t>(
        options_.clock.from_milliseconds(static_cast<uint64_t>(options_.share_age.count()) * 1'000));
    PENSTOCK_TRY(copies::Sweep sweep,
                 copies::Sweep::create(options_.tables, options_.clock, min_age, options_.store));
    Stream stream(*this, request.gateway());
    PENSTOCK_TRY_STATUS(stream.follow_plan());
    if (request.give_back() && options_.give_back && !give_back(stream, request.gateway(), receiver)) {
        return {};
    }
    bool is_recovering = options_.is_recovering(request.gateway());  // as the pass begins
    std::vector<std::byte> records;
    std::chrono::milliseconds pause{0};  // after `burst` steps
    uint32_t burst = 1;
    const std::chrono::milliseconds quiet_max = options_.holder ? kQuietMaxOnLinks : kQuietMax;
    auto last_sent = std::chrono::steady_clock::now();
    const auto send = [&](bool pass_ended) {
        last_sent = std::chrono::steady_clock::now();
        v1::ConnectionCopies message = stream.message(records);
        message.set_pass_ended(pass_ended);
        message.set_held(sweep.held());
        message.set_recovering(is_recovering);
        return receiver.send(message);
    };
    // False: the receiver has left.
    const auto rest = [&](std::chrono::milliseconds left) {
        records.clear();
        for (; left > quiet_max; left -= quiet_max) {
            if (!receiver.wait(quiet_max) || !send(false)) {
                return false;
            }
        }
        return receiver.wait(left);
    };
    for (uint32_t steps = 1;; ++steps) {
        PENSTOCK_TRY_STATUS(stream.follow_plan());
        records.clear();
        const bool pass_ended = sweep.step(
            copies::Sweep::kStepUnitsMax, options_.now(),
            [&](const IpAddr& vip, const IpAddr& client) { return stream.selects(vip, client); }, records);
        if (!records.empty() || pass_ended || std::chrono::steady_clock::now() - last_sent > quiet_max) {
            if (!send(pass_ended)) {
                return {};
            }
            stream.note(copies::count_records(records), sweep.held());
        }
        if (pause.count() != 0 && (steps % burst == 0 || pass_ended) && !rest(pause)) {
            return {};
        }
        if (pass_ended) {
            stream.end_pass();
            // The next pass has about as many steps.
            burst = std::max<uint32_t>(
                1, static_cast<uint32_t>(steps * kPauseMin.count() / options_.pass.count()));
            pause = options_.pass * burst / std::max(steps, burst);
            steps = 0;
            is_recovering = options_.is_recovering(request.gateway());
        }
    }
}

CopySender::Sent CopySender::sent_to(const std::string& gateway) const {
    const std::lock_guard lock(mutex_);
    const auto found = sent_.find(gateway);
    return found == sent_.end() ? Sent{} : found->second;
}

}  // namespace penstock::gateway
