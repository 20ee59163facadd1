// SPDX-License-Identifier: Apache-2.0
// The announcement of VIPs: whether and at which level they are announced, by routes, by addresses or by
// workers that answer ARP and ND, and the order of a drain. Used by the caretaker's thread, except report().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/gateway/care/drain_order.hpp"
#include "control/gateway/care/link_shares.hpp"
#include "control/gateway/care/port_faults.hpp"
#include "control/gateway/care/vip_presence.hpp"
#include "control/gateway/care/vip_presence_mode.hpp"
#include "control/gateway/care/vip_responder.hpp"
#include "control/gateway/care/vip_route_keeper.hpp"
#include "control/gateway/compile/compile.hpp"
#include "control/model/observed.hpp"

namespace penstock::gateway {

struct VipAnnouncerOptions {
    // At most one; none: VIPs are not announced.
    std::optional<VipPresenceOptions> addresses;
    std::optional<VipRouteOptions> routes;
    // With routes: workers answer for the VIPs on the links while they are served at kServeMetric
    // (VipPresenceMode::Arp). With addresses: for those beyond the limit of addresses.
    std::optional<VipResponderOptions> responder;
    // With routes and a responder, and with a plan of shares: called with each change. The answer is
    // Facts::held.
    std::function<void(const LinkShares&)> on_link_shares = [](const LinkShares&) {};
    bool stands_by = false;  // routes have kStandByMetric
    // Packets received for the service ports in `compiled` that have VIPs, since start. Null: unknown.
    std::function<uint64_t(const Compiled& compiled)> vip_packets;
    // Flows that have not ended. Null: none.
    std::function<uint64_t()> open_flows;
};

// For status and metrics.
struct VipReport {
    VipPresenceMode mode = VipPresenceMode::Off;
    std::vector<VipView> vips;  // sorted; empty with Off
    DrainStep drain = DrainStep::Serving;
    std::optional<std::chrono::steady_clock::time_point> depreferred_until;
};

class VipAnnouncer {
 public:
    using Clock = std::chrono::steady_clock;

    // `drained`: the drain of an earlier process goes on.
    VipAnnouncer(VipAnnouncerOptions options, bool drained);

    // The configuration that every worker has now (PRESENCE-001).
    void set(std::shared_ptr<const Compiled> compiled);

    struct Facts {
        std::shared_ptr<const drivers::MirroredState> mirror;
        std::span<const PortState> ports;
        bool drained = false;
        std::string withheld;  // why no VIP may be announced, the drain excepted; "": no reason
        std::shared_ptr<const GatewayShares> shares = {};  // with routes; null: none
        uint64_t returning = 0;                            // ShareReturn::returning()
        // With `shares`, workers answer on links only for addresses of these.
        HeldShares held = {};
        bool has_configuration = true;  // false: before the first one, no share is held
    };
    // One round. Returns when the next one is needed at the latest; empty: whenever a fact changes.
    std::optional<Clock::time_point> work(const Facts& facts, Clock::time_point now);
    // Withdraws all VIPs.
    void withdraw(const drivers::MirroredState& mirror);

    // VIPLimitReached and VIPRouteConflict, by the service ports that have the VIPs.
    [[nodiscard]] const std::vector<model::ObservedNotice>& notices() const noexcept { return notices_; }
    // Any thread; never null.
    [[nodiscard]] std::shared_ptr<const VipReport> report() const;

 private:
    bool announce(const Facts& facts, Clock::time_point now);
    void answer_on_links(const Facts& facts, const VipRouteKeeper::Wish& wish, Clock::time_point now);
    void report_link_shares();
    [[nodiscard]] VipPresenceMode mode() const noexcept;
    void update_notices();
    void update_report(const std::shared_ptr<const drivers::MirroredState>& mirror);

    const VipAnnouncerOptions options_;
    std::optional<VipPresence> addresses_;
    std::optional<VipRouteKeeper> routes_;
    std::optional<VipResponder> responder_;
    DrainOrder order_;
    std::shared_ptr<const Compiled> compiled_;
    std::vector<model::ObservedNotice> notices_;
    // What notices_ was derived from.
    std::vector<IpAddr> noted_;
    std::shared_ptr<const Compiled> noted_in_;
    // What the wanted VIPs of responder_ were derived from, with routes.
    struct LinkInputs {
        std::shared_ptr<const Compiled> compiled;
        std::shared_ptr<const drivers::MirroredState> mirror;
        std::vector<PortState> ports;
        VipRouteKeeper::Wish wish;
        HeldShares held;
        bool has_configuration = false;
        bool operator==(const LinkInputs&) const = default;
    } planned_for_;
    LinkShares link_shares_;           // by planned_for_; `answered` by responder_
    LinkShares reported_link_shares_;  // to on_link_shares
    // What report_ was derived from, with addresses.
    std::shared_ptr<const drivers::MirroredState> reported_mirror_;

    mutable std::mutex mutex_;
    std::shared_ptr<const VipReport> report_ = std::make_shared<const VipReport>();
};

}  // namespace penstock::gateway
