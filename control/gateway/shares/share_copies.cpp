// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/share_copies.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "control/client/target.hpp"
#include "control/log/log.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::gateway {
namespace {

constexpr std::chrono::seconds kTick{1};
// Ticks for a sweep of the whole store.
constexpr uint32_t kSweepTicks = 16;
// A connection is superseded if packets have passed at the other gateway for this long without it. Ages lose
// the time that a record is on its way, and last_seen is renewed once a second.
constexpr uint64_t kSupersededMs = 5'000;
// A copy may be idle for this much longer than its connection (copies::Sweep::kRefreshS, and a slow pass).
constexpr std::chrono::milliseconds kIdleSlack{1'000 * (copies::Sweep::kRefreshS + 10)};

}  // namespace

ShareCopies::ShareCopies(Options options)
    : options_(std::move(options)),
      sender_([this] {
          CopySender::Options sender = options_.sender;
          sender.has_returned = [this] { return has_returned_.load(); };
          sender.store = options_.store;
          if (options_.store != nullptr) {
              sender.give_back = [this](const std::string& gateway, uint32_t& from,
                                        std::vector<std::byte>& out) {
                  const std::lock_guard lock(shared_->mutex);
                  return shared_->book.give_back(gateway, from, options_.sender.now(), options_.sender.clock,
                                                 out);
              };
              sender.is_recovering = [this](const std::string& gateway) { return is_recovering(gateway); };
          }
          return sender;
      }()),
      return_(options_.returns, options_.former_returning, options_.fail_back),
      shared_(options_.store == nullptr ? nullptr : std::make_unique<SharedBook>(*options_.store)) {}

ShareCopies::~ShareCopies() {
    stop();
    end_followers();
}

std::shared_ptr<const tls::Material> ShareCopies::material() {
    const std::lock_guard lock(material_mutex_);
    return is_stopped_ ? nullptr : options_.material();
}

void ShareCopies::start() {
    review_strays();
    if (shared_ != nullptr && options_.is_protected) {
        set_plan(options_.sender.shares());
        thread_ = std::jthread([this](const std::stop_token& stopped) { run(stopped); });
    }
}

void ShareCopies::stop() {
    {
        const std::scoped_lock lock(material_mutex_, announce_mutex_);
        is_stopped_ = true;
    }
    {
        const std::lock_guard lock(strays_mutex_);
        has_strays_ended_ = true;
    }
    thread_ = {};
    request_stop_of_followers();
}

// Streams end together: the last one does not wait for the others.
void ShareCopies::request_stop_of_followers() {
    const std::lock_guard lock(mutex_);
    for (const auto& [gateway, follower] : followers_) {
        follower->request_stop();
    }
}

void ShareCopies::end_followers() {
    request_stop_of_followers();
    std::map<std::string, std::unique_ptr<Follower>> ended;
    const std::lock_guard lock(mutex_);
    ended.swap(followers_);
}

void ShareCopies::set_plan(const std::shared_ptr<const GatewayShares>& own) {
    review_strays();
    if (shared_ == nullptr || !options_.is_protected) {
        return;
    }
    {
        const std::lock_guard lock(material_mutex_);
        if (is_stopped_) {
            return;
        }
    }
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->book.set_plan(own);
    }
    shared_->in_portions([from = uint32_t{0}](CopyBook& book) mutable { return book.review(from); });
    // The other gateway does not repeat what was refused under the former plan, so each stream begins anew.
    end_followers();
    const std::lock_guard lock(mutex_);
    followed_ = own->plan().version;
    for (const shares::Gateway& gateway : own->plan().gateways) {
        if (!may_copy(*own, gateway.name)) {
            continue;
        }
        auto& channel = channels_[gateway.name];
        if (channel == nullptr) {
            channel = std::make_unique<CopyChannel>(
                gateway.name, *shared_, options_.sender.clock,
                [this](const conn::Connection& connection) {
                    return options_.own_of(connection.forward) || options_.own_of(connection.reverse);
                },
                [this] { review_strays(); });
        }
        followers_[gateway.name] =
            std::make_unique<Follower>(Follower::Options{.own_name = own->gateway_name(),
                                                         .target = client::Target{gateway.address},
                                                         .plan_version = own->plan().version,
                                                         .material = [this] { return material(); },
                                                         .now = options_.sender.now},
                                       *channel);
    }
}

void ShareCopies::run(const std::stop_token& stopped) {
    std::mutex mutex;
    std::condition_variable_any wakes;
    std::unique_lock lock(mutex);
    while (!wakes.wait_for(lock, stopped, kTick, [&] { return stopped.stop_requested(); }) &&
           !stopped.stop_requested()) {
        tick(std::chrono::steady_clock::now(), stopped);
    }
}

uint64_t ShareCopies::review_returning(const GatewayShares& own) {
    review_return(own);
    return returning();
}

uint64_t ShareCopies::returning() const {
    const std::lock_guard lock(return_mutex_);
    return return_.returning();
}

uint64_t ShareCopies::held() const {
    const std::lock_guard lock(return_mutex_);
    return return_.held();
}

Result<uint64_t> ShareCopies::fail_back() {
    const std::shared_ptr<const GatewayShares> own = options_.sender.shares();
    uint64_t held = 0;
    {
        const std::lock_guard lock(return_mutex_);
        held = return_.held();
        return_.fail_back();
    }
    review_and_announce(*own);
    // The channel of a share that was held may have been lost meanwhile.
    const uint64_t waiting = returning();
    if (const uint64_t returned = held & ~waiting; returned != 0) {
        return returned;
    }
    for (size_t number = 0; number < own->plan().shares.size(); ++number) {
        if ((waiting >> number & 1) != 0 &&
            own->part_in(static_cast<uint8_t>(number)).role == shares::Role::Primary) {
            return fail(Errc::Outdated, "share " + std::to_string(number) +
                                            " waits for copies of all connections of gateway " +
                                            own->plan().shares[number].heir +
                                            "; penstockctl get gateways shows the channel");
        }
    }
    return 0;
}

void ShareCopies::lose(uint64_t shares) {
    lost_at_ = std::chrono::steady_clock::now();  // before a review returns to them
    {
        const std::lock_guard lock(return_mutex_);
        return_.lose(shares);
    }
    review_and_announce(*options_.sender.shares());
}

LinkHolder::Peer ShareCopies::holder_of(const std::string& gateway) const {
    const CopyChannel* const channel = channel_of(gateway);
    LinkHolder::Peer peer =
        channel == nullptr ? LinkHolder::Peer() : channel->holder(std::chrono::steady_clock::now());
    peer.silent_since = std::max(peer.silent_since, created_);
    return peer;
}

// By the last pass of each stream. Without a stream it is not known.
bool ShareCopies::may_serve_as_heir() const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(followers_, [&](const auto& entry) {
        const CopySender::Sent sent = sender_.sent_to(entry.first);
        return sent.streams == 0 || sent.as_heir > 0;
    });
}

const CopyChannel* ShareCopies::channel_of(const std::string& gateway) const {
    const std::lock_guard lock(mutex_);
    const auto found = channels_.find(gateway);
    return found == channels_.end() ? nullptr : found->second.get();
}

// True until a whole pass of the gateway has been received: it may still give back copies of connections of
// this gateway. Also true without a channel.
bool ShareCopies::is_recovering(const std::string& gateway) const {
    const CopyChannel* const channel = channel_of(gateway);
    return channel == nullptr || !channel->has_recovered();
}

ShareReturn::Peer ShareCopies::peer_of(const GatewayShares& own, const std::string& gateway) const {
    using Channel = ShareReturn::Peer::Channel;
    if (shared_ == nullptr || !options_.is_protected || !may_copy(own, gateway)) {
        return {};
    }
    const CopyChannel* channel = nullptr;
    {
        const std::lock_guard lock(mutex_);
        // Streams by a former plan may not contain this share.
        if (followed_ != own.plan().version) {
            return {Channel::Copying, false};
        }
        const auto found = channels_.find(gateway);
        channel = found == channels_.end() ? nullptr : found->second.get();
    }
    const CopyChannel::View view = channel == nullptr ? CopyChannel::View() : channel->view();
    switch (view.state) {
        case ChannelState::Off:
        case ChannelState::Unprotected:
        case ChannelState::Connecting:
            break;
        case ChannelState::Copying:
            return {Channel::Copying, view.has_returned};
        // A full store gets no more copies by waiting: the gateway returns with those that it has.
        case ChannelState::Full:
        case ChannelState::Complete:
            return {view.plan_version < own.plan().version || !has_pass_since_loss(view) ? Channel::Copying
                                                                                         : Channel::Complete,
                    view.has_returned};
    }
    return {Channel::Away, view.has_returned};
}

// Whether a whole pass over the other gateway's connections has begun and ended after lose().
bool ShareCopies::has_pass_since_loss(const CopyChannel::View& view) const {
    const auto lost_at = lost_at_.load();
    return lost_at == std::chrono::steady_clock::time_point() ||
           (view.complete_at && *view.complete_at >= lost_at + 2 * options_.sender.pass);
}

// Without a common share there is no channel: the gateway takes strays as long as it answers on the link.
// While this process starts, the other gateway serves connections whose packets may arrive here. It takes
// strays until the call fails, or has not been answered in time.
bool ShareCopies::takes_strays(const GatewayShares& own, const std::string& gateway) const {
    if (own.plan().common_shares(own.gateway_name(), gateway) == 0) {
        return true;
    }
    if (shared_ == nullptr || !options_.is_protected || !may_copy(own, gateway)) {
        return false;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool is_starting = now - created_ <= CopyChannel::kStraySilence;
    const CopyChannel* const channel = channel_of(gateway);
    return channel == nullptr ? is_starting : channel->takes_strays(now).value_or(is_starting);
}

void ShareCopies::review_strays() {
    const std::lock_guard lock(strays_mutex_);
    const std::shared_ptr<const GatewayShares> own = options_.sender.shares();
    if (has_strays_ended_ || !options_.on_strays) {
        return;
    }
    std::vector<std::string> takers;
    for (const shares::Gateway& gateway : own->plan().gateways) {
        if (own->plan().forwards_strays && takes_strays(*own, gateway.name)) {
            takers.push_back(gateway.name);
        }
    }
    if (own == stray_plan_ && takers == stray_takers_) {
        return;
    }
    const auto takes = [&](const std::string& gateway) {
        return std::ranges::find(takers, gateway) != takers.end();
    };
    options_.on_strays(strays_of(own.get(), takes));
    stray_plan_ = own;
    stray_takers_ = std::move(takers);
}

bool ShareCopies::review_return(const GatewayShares& own) {
    const std::lock_guard lock(return_mutex_);
    const bool has_changed = return_.update(
        own, [&](const std::string& gateway) { return peer_of(own, gateway); },
        std::chrono::steady_clock::now());
    has_returned_ = return_.has_returned_as_primary();
    return has_changed;
}

void ShareCopies::review_and_announce(const GatewayShares& own) {
    const std::lock_guard lock(announce_mutex_);
    if (!is_stopped_ && review_return(own) && options_.on_return) {
        const uint64_t left = returning();
        log::get("control").info(left == 0 ? "shares: this gateway has returned to all of them"
                                           : "shares: this gateway has returned to some of them");
        options_.on_return(left);
    }
}

// Channels live as long as this object. mutex_ is not held while one waits for the book.
void ShareCopies::restart_streams(std::chrono::steady_clock::time_point now) {
    std::vector<std::pair<std::string, const CopyChannel*>> followed;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [gateway, follower] : followers_) {
            followed.emplace_back(gateway, channels_.at(gateway).get());
        }
    }
    std::erase_if(followed, [&](const auto& one) { return !one.second->needs_restart(now); });
    const std::lock_guard lock(mutex_);
    for (const auto& [gateway, channel] : followed) {
        if (const auto follower = followers_.find(gateway); follower != followers_.end()) {
            follower->second->restart(
                "no message for too long, or the store had no room: a new stream begins");
        }
    }
}

void ShareCopies::tick(std::chrono::steady_clock::time_point now, const std::stop_token& stopped) {
    review_strays();
    review_and_announce(*options_.sender.shares());
    restart_streams(now);
    const auto limit_of = options_.limits();
    const auto slack = static_cast<int32_t>(options_.sender.clock.from_milliseconds(kIdleSlack.count()));
    const auto margin = static_cast<int32_t>(options_.sender.clock.from_milliseconds(kSupersededMs));
    const bool serves_as_heir = may_serve_as_heir();
    shared_->in_portions([&, left = options_.store->slots() / kSweepTicks + 1](CopyBook& book) mutable {
        const uint32_t units = std::min(left, CopyBook::kPortion);
        left -= units;
        book.sweep(units, {.now = options_.sender.now(),
                           .limit_of = [&](const conn::Connection& copy) { return limit_of(copy) + slack; },
                           .lives = options_.lives,
                           .own_of = options_.own_of,
                           .may_serve_as_heir = serves_as_heir,
                           .margin = margin});
        return left > 0 && !stopped.stop_requested();
    });
}

std::vector<ShareCopies::Channel> ShareCopies::channels(const GatewayShares& own) const {
    std::vector<Channel> out;
    for (const shares::Gateway& gateway : own.plan().gateways) {
        if (gateway.name == own.gateway_name()) {
            continue;
        }
        Channel& channel = out.emplace_back();
        channel.gateway = gateway.name;
        channel.has_common_shares = own.plan().common_shares(own.gateway_name(), gateway.name) != 0;
        channel.sent = sender_.sent_to(gateway.name);
        channel.view.state = !may_copy(own, gateway.name) ? ChannelState::Off
                             : !options_.is_protected     ? ChannelState::Unprotected
                             : shared_ == nullptr         ? ChannelState::Off
                                                          : ChannelState::Connecting;
        const CopyChannel* const followed = channel_of(gateway.name);
        if (channel.view.state == ChannelState::Connecting && followed != nullptr) {
            channel.view = followed->view();
        }
        if (shared_ != nullptr) {
            const std::lock_guard lock(shared_->mutex);
            channel.counts = shared_->book.counts(gateway.name);
        }
    }
    return out;
}

uint64_t ShareCopies::held_in(uint8_t share) const {
    if (shared_ == nullptr) {
        return 0;
    }
    const std::lock_guard lock(shared_->mutex);
    return shared_->book.held_in(share);
}

uint64_t ShareCopies::taken() const {
    if (shared_ == nullptr) {
        return 0;
    }
    const std::lock_guard lock(shared_->mutex);
    return shared_->book.taken();
}

uint32_t ShareCopies::capacity() const noexcept {
    return options_.store == nullptr ? 0 : options_.store->capacity();
}

ChannelState ShareCopies::summary_of(const std::vector<Channel>& channels) noexcept {
    std::optional<ChannelState> worst;
    for (const Channel& channel : channels) {
        if (channel.has_common_shares && channel.view.state != ChannelState::Off) {
            worst = std::min(worst.value_or(channel.view.state), channel.view.state);
        }
    }
    return worst.value_or(ChannelState::Off);
}

}  // namespace penstock::gateway
