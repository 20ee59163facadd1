// SPDX-License-Identifier: Apache-2.0
// VIPs for which workers answer ARP and ND on the link (LB-018), and their announcement there (PRESENCE-004).
// The caller decides which VIPs these are. A VIP is announced when every worker answers for it.
//
//   plan_link_vips(), or VIPs without an address --> wanted --> answer_for() --> reconciler --> workers
//                                                      |                             |
//                                                      +-- both: announced <-- answered()
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/gateway/care/announcement_schedule.hpp"
#include "control/gateway/care/vip_route_keeper.hpp"
#include "dataplane/route/link_vips.hpp"

namespace penstock::gateway {

// The link of each VIP: of the port with the longest subnet of `address=` around it, of equal ones the first
// whose link is up. Without a port: `reason`, kLinkDown if its link is down, and no worker may answer. In the
// order of `inputs.vips`.
inline constexpr const char* kLinkDown = "the port of its subnet is down or removed";
[[nodiscard]] std::vector<PlannedVip> plan_link_vips(const VipPlanInputs& inputs);

struct VipResponderOptions {
    // Makes workers answer for these VIPs, null: for none. Returns before they do.
    std::function<void(std::shared_ptr<const route::LinkVips>)> answer_for;
    // The VIPs that every running worker answers for now.
    std::function<std::shared_ptr<const route::LinkVips>()> answered;
    std::function<void(const route::LocalAddress& vip, const MacAddr& mac)> announce;
};

// Used by one thread.
class VipResponder {
 public:
    using Clock = std::chrono::steady_clock;

    explicit VipResponder(VipResponderOptions options) : options_(std::move(options)) {}

    // The VIPs that workers shall answer for, in any order.
    void want(std::vector<route::LinkVip> wanted);
    // One round: passes on what is wanted, and announces what workers answer for. `mirror` supplies the
    // Ethernet addresses of the ports.
    void work(const drivers::MirroredState& mirror, Clock::time_point now);
    // No worker answers any more.
    void withdraw();

    // When work() must be called next for an announcement; empty: never.
    [[nodiscard]] std::optional<Clock::time_point> next() const { return announcements_.next(); }
    // The VIPs that are wanted and that every worker answers for; sorted.
    [[nodiscard]] const std::vector<route::LinkVip>& present() const noexcept { return present_; }
    // Those for which any worker may answer: what has been passed on, and what was before it until every
    // worker has it.
    [[nodiscard]] std::vector<route::LinkVip> maybe_answered() const;
    // Whether present() may have changed since the last call.
    [[nodiscard]] bool take_changed() noexcept { return std::exchange(changed_, false); }
    // Sets `is_answered` of the views (sorted) of VIPs that are present.
    void mark(std::vector<VipView>& views) const;

 private:
    void follow(const std::shared_ptr<const route::LinkVips>& answered, Clock::time_point now);
    void announce(const drivers::MirroredState& mirror, Clock::time_point now);

    const VipResponderOptions options_;
    std::vector<route::LinkVip> wanted_, present_;  // sorted
    std::shared_ptr<const route::LinkVips> answered_;
    std::vector<std::shared_ptr<const route::LinkVips>>
        passed_;  // the last ones, until workers have the newest
    AnnouncementSchedule announcements_;
    bool is_new_ = false;  // wanted_ has not been passed on
    bool changed_ = true;
};

}  // namespace penstock::gateway
