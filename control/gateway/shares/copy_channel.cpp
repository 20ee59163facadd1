// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/copy_channel.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "control/gateway/shares/copy_sender.hpp"
#include "control/log/log.hpp"
#include "dataplane/copies/record.hpp"

namespace penstock::gateway {

const char* to_string(ChannelState state) noexcept {
    switch (state) {
        case ChannelState::Off:
            break;
        case ChannelState::Unprotected:
            return "unprotected";
        case ChannelState::Connecting:
            return "connecting";
        case ChannelState::Copying:
            return "copying";
        case ChannelState::Full:
            return "full";
        case ChannelState::Complete:
            return "complete";
    }
    return "off";
}

void CopyChannel::begin_call(Time at) {
    const std::lock_guard lock(mutex_);
    is_called_ = true;
    last_message_ = at;
}

void CopyChannel::begin_stream(Time at) {
    {
        const std::lock_guard lock(shared_.mutex);
        shared_.book.begin_stream(gateway_);
    }
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    had_pass_ = false;
    may_give_back_ = !view_.has_recovered;
    last_message_ = began_ = at;
    ++view_.streams;
}

Status CopyChannel::take(const v1::ConnectionCopies& message, CoarseTime now, Time at) {
    if (message.format() != kCopyFormat) {
        return fail(Errc::Unsupported, "records of format " + std::to_string(message.format()) +
                                           ", this gateway reads format " + std::to_string(kCopyFormat));
    }
    if (message.gateway() != gateway_) {
        return fail(Errc::InvalidArgument, "gateway " + log::json_escaped(message.gateway().substr(0, 64)) +
                                               " answers at the address of gateway " + gateway_ +
                                               ": correct its address= in the plan");
    }
    {
        // Before the book is locked: a book that is in use for long is no silence of the other gateway.
        const std::lock_guard lock(mutex_);
        last_message_ = at;
        note_holder(message, at);
        may_give_back_ = may_give_back_ && message.given_back();
        if (message.given_back() && !may_give_back_) {
            return fail(Errc::InvalidArgument,
                        "gateway " + gateway_ + " gives connections back that this one has not requested");
        }
    }
    const std::string& bytes = message.records();
    PENSTOCK_TRY_IN("records refused", const std::vector<copies::Record> records,
                    copies::decode(std::as_bytes(std::span(bytes)), now, clock_));
    shared_.in_portions([&, rest = std::span(records)](CopyBook& book) mutable {
        const auto some = rest.first(std::min(rest.size(), CopyBook::kRecordsAtOnce));
        rest = rest.subspan(some.size());
        if (message.given_back()) {
            book.take_back(gateway_, some, is_in_table_);
        } else {
            book.apply(gateway_, some);
        }
        return !rest.empty();
    });
    if (message.pass_ended() && !message.recovering()) {
        shared_.in_portions(
            [&, from = uint32_t{0}](CopyBook& book) mutable { return book.end_pass(gateway_, from); });
    }
    bool has_changed = false;
    {
        const std::lock_guard lock(mutex_);
        note(message, at);
        has_changed = std::exchange(takes_strays_, message.takes_strays()) != message.takes_strays();
    }
    if (has_changed) {
        on_strays_();
    }
    return {};
}

void CopyChannel::note_holder(const v1::ConnectionCopies& message, Time at) {
    holder_.reset();
    if (!message.has_holder()) {
        return;
    }
    const v1::HolderReport& report = message.holder();
    holder_ = {.plan_version = report.plan_version(),
               .able = report.able(),
               .ready = report.ready(),
               .held = report.held(),
               .served = report.served()};
    reported_ = at;
    for (const std::string& bytes : report.macs()) {
        if (MacAddr mac; bytes.size() == mac.bytes.size() && holder_->macs.size() < kPortsMax) {
            std::ranges::copy(bytes, mac.bytes.begin());
            holder_->macs.push_back(mac);
        }
    }
    macs_ = holder_->macs;
}

void CopyChannel::note(const v1::ConnectionCopies& message, Time at) {
    last_message_ = at;
    view_.plan_version = message.plan_version();
    view_.has_returned = message.has_returned();
    view_.fault.clear();
    if (message.pass_ended()) {
        had_pass_ = true;
        view_.has_recovered = true;
        view_.complete_at = at;
    }
}

void CopyChannel::end_stream(std::string why, End end) {
    bool has_changed = false;
    {
        const std::lock_guard lock(mutex_);
        is_called_ = is_open_ = false;
        has_changed = end == End::Failed && std::exchange(takes_strays_, false) != false;
        if (end == End::Failed) {
            holder_.reset();
        }
        view_.fault = std::move(why);
    }
    if (has_changed) {
        on_strays_();
    }
}

std::optional<bool> CopyChannel::takes_strays(Time now) const {
    const std::lock_guard lock(mutex_);
    return takes_strays_ ? std::optional(*takes_strays_ && now - last_message_ <= kStraySilence)
                         : std::nullopt;
}

LinkHolder::Peer CopyChannel::holder(Time now) const {
    const std::lock_guard lock(mutex_);
    LinkHolder::Peer peer{.silent_since = reported_};
    if (holder_ && now - reported_ <= LinkHolder::kSilence) {
        peer.is_reporting = true;
        peer.report = *holder_;
    }
    peer.report.macs = macs_;
    return peer;
}

bool CopyChannel::has_recovered() const {
    const std::lock_guard lock(mutex_);
    return view_.has_recovered;
}

CopyChannel::View CopyChannel::view() const {
    bool is_partial = false;
    {
        const std::lock_guard lock(shared_.mutex);
        is_partial = shared_.book.is_partial(gateway_);
    }
    const std::lock_guard lock(mutex_);
    View out = view_;
    out.state = !is_open_    ? ChannelState::Connecting
                : !had_pass_ ? ChannelState::Copying
                : is_partial ? ChannelState::Full
                             : ChannelState::Complete;
    return out;
}

bool CopyChannel::needs_restart(Time now) const {
    bool has_lost_copies = false;
    {
        const std::lock_guard lock(shared_.mutex);
        has_lost_copies = shared_.book.is_partial(gateway_) && shared_.book.has_room();
    }
    const std::lock_guard lock(mutex_);
    return (is_called_ && now - last_message_ > kSilence) ||
           (is_open_ && had_pass_ && has_lost_copies && now - began_ >= kFullPause);
}

}  // namespace penstock::gateway
