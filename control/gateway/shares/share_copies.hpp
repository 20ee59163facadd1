// SPDX-License-Identifier: Apache-2.0
// Copies of connections between the gateways of a plan of shares (docs/adr/0050): sends this gateway's
// connections to others, and follows each gateway of the plan with which this one has a share in common. One
// thread for each followed gateway, and one for what happens each second: the end of idle copies, and of
// copies that were taken over and have left the tables.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/shares/copy_channel.hpp"
#include "control/gateway/shares/copy_sender.hpp"
#include "control/gateway/shares/follower.hpp"
#include "control/gateway/shares/gateway_shares.hpp"
#include "control/gateway/shares/share_return.hpp"
#include "control/gateway/shares/share_strays.hpp"
#include "control/tls/material.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/copies/store.hpp"

namespace penstock::gateway {

class ShareCopies {
 public:
    struct Options {
        CopySender::Options sender;
        copies::Store* store = nullptr;  // of copies of others; null: --share-copies 0
        // The files of --tls-* now; null: none is valid. Any thread.
        std::function<std::shared_ptr<const tls::Material>()> material;
        bool is_protected = false;  // the gateway serves TCP, with --tls-* files
        // Units of CoarseTime after which an idle connection ends, by the configuration in force. Any thread.
        std::function<std::function<int32_t(const conn::Connection&)>()> limits;
        // Whether a worker has a connection with the keys of this one. Any thread.
        std::function<bool(const conn::Connection&)> lives;
        // The connection of a worker with this key. Any thread.
        std::function<std::optional<copies::OwnConnection>(const packet::FlowKey&)> own_of =
            [](const packet::FlowKey&) { return std::nullopt; };
        ShareReturn::First returns = ShareReturn::First::AtStart;
        uint64_t former_returning = 0;  // ShareReturn::returning() of the process that this one continues
        ShareReturn::FailBack fail_back = ShareReturn::FailBack::Automatic;
        // Called with each change of returning() that has another cause than a plan, by one thread at a time:
        // this object's, or that of fail_back(). Not called after stop().
        std::function<void(uint64_t returning)> on_return;
        // Called with each change of the gateways that take strays, and with each plan; null: strays are not
        // forwarded. One call at a time; not called after stop(). Any thread.
        std::function<void(std::shared_ptr<const shares::Strays>)> on_strays;
    };
    explicit ShareCopies(Options options);
    ~ShareCopies();
    ShareCopies(const ShareCopies&) = delete;
    ShareCopies& operator=(const ShareCopies&) = delete;

    // For the gRPC server. Valid from the constructor on.
    [[nodiscard]] rpc::PeerTarget& sender() noexcept { return sender_; }

    // Follows the gateways of the plan from now on. Once; `material` must work.
    void start();
    // Starts and ends streams as a new plan requires. After start(); one thread at a time. After stop() it
    // does nothing.
    void set_plan(const std::shared_ptr<const GatewayShares>& own);
    // The shares of a plan to which the gateway returns, a bit each; before it is in force. Any thread.
    [[nodiscard]] uint64_t review_returning(const GatewayShares& own);
    // By the last plan. Any thread.
    [[nodiscard]] uint64_t returning() const;
    // Of these, the shares that only wait for fail_back(). Any thread.
    [[nodiscard]] uint64_t held() const;
    // Returns to the shares that are held. The result has a bit for each; 0: there is none, because this
    // gateway has returned to all shares of which it is the primary. Outdated: it cannot return to any share
    // yet; the error names one. Any thread.
    Result<uint64_t> fail_back();
    // These shares have been held by another gateway meanwhile: returns to them. Calls Options::on_return.
    // Any thread.
    void lose(uint64_t shares);
    // What a gateway of the plan reports about shares on links. LinkHolder::Peer::bfd is not set. Any thread.
    [[nodiscard]] LinkHolder::Peer holder_of(const std::string& gateway) const;
    // Calls Options::on_strays if the plan in force, or the gateways that take strays, have changed. Any
    // thread.
    void review_strays();
    // Ends all streams that this gateway has opened. Returns at once: a follower that resolves a name, or
    // examines why a connection fails, is waited for by the destructor. Options::material is not called
    // afterwards. Idempotent.
    void stop();

    // Of another gateway of the plan in force.
    struct Channel {
        std::string gateway;
        bool has_common_shares = false;
        CopyChannel::View view;
        CopyBook::Counts counts;
        CopySender::Sent sent;
    };
    // By the order of the plan. Any thread.
    [[nodiscard]] std::vector<Channel> channels(const GatewayShares& own) const;
    // Copies held of connections of a share. Any thread.
    [[nodiscard]] uint64_t held_in(uint8_t share) const;
    // Copies that workers have taken over and whose connections live. Any thread.
    [[nodiscard]] uint64_t taken() const;
    // IPv4 connections, or half as many others, for which there is room; 0: --share-copies 0.
    [[nodiscard]] uint32_t capacity() const noexcept;

    // The least complete state of the gateways with common shares, those that are Off excluded; Off if there
    // are no others.
    [[nodiscard]] static ChannelState summary_of(const std::vector<Channel>& channels) noexcept;

 private:
    [[nodiscard]] std::shared_ptr<const tls::Material> material();
    void request_stop_of_followers();
    void end_followers();
    void run(const std::stop_token& stopped);
    void tick(std::chrono::steady_clock::time_point now, const std::stop_token& stopped);
    void restart_streams(std::chrono::steady_clock::time_point now);
    // True: returning() has changed.
    bool review_return(const GatewayShares& own);
    // Passes a change on to Options::on_return.
    void review_and_announce(const GatewayShares& own);
    // Null: the gateway has never been followed. Channels live as long as this object.
    [[nodiscard]] const CopyChannel* channel_of(const std::string& gateway) const;
    [[nodiscard]] bool may_serve_as_heir() const;
    [[nodiscard]] bool is_recovering(const std::string& gateway) const;
    [[nodiscard]] bool has_pass_since_loss(const CopyChannel::View& view) const;
    [[nodiscard]] bool takes_strays(const GatewayShares& own, const std::string& gateway) const;
    [[nodiscard]] ShareReturn::Peer peer_of(const GatewayShares& own, const std::string& gateway) const;

    const Options options_;
    const std::chrono::steady_clock::time_point created_ = std::chrono::steady_clock::now();
    std::atomic<bool> has_returned_{false};  // read by sender_
    // The last lose(); the epoch: none.
    std::atomic<std::chrono::steady_clock::time_point> lost_at_{};
    CopySender sender_;
    mutable std::mutex return_mutex_;
    ShareReturn return_;       // guarded by return_mutex_
    std::mutex strays_mutex_;  // held while Options::on_strays is called
    bool has_strays_ended_ = false;
    std::vector<std::string> stray_takers_;
    std::shared_ptr<const GatewayShares> stray_plan_;  // of the last call
    std::unique_ptr<SharedBook> shared_;               // null: --share-copies 0
    std::mutex material_mutex_;                        // held while Options::material is called
    std::mutex announce_mutex_;                        // held while Options::on_return is called
    bool is_stopped_ = false;                          // written with both held, read with one of them
    mutable std::mutex mutex_;
    // Guarded by mutex_. Channels live as long as this object.
    std::map<std::string, std::unique_ptr<CopyChannel>> channels_;
    std::map<std::string, std::unique_ptr<Follower>> followers_;
    uint64_t followed_ = 0;  // version of the plan of followers_
    std::jthread thread_;    // last: it uses all of the above
};

}  // namespace penstock::gateway
