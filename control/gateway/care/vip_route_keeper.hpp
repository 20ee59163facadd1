// SPDX-License-Identifier: Apache-2.0
// VIPs as kernel routes through the twins, which routing daemons export (PRESENCE-002, LB-018). The wanted
// routes follow from the configuration of the workers, the ports and the level of the gateway; the present
// ones are recorded, and read from Linux at the start, after a failure, after a change of a link, and
// periodically. Only the difference is applied, the new route of a VIP before its old one is removed.
//
//   served VIPs --+
//   ports, twins -+--> plan_vips() --> wanted --+--> vip_route_changes() --> VipRoutes::apply()
//   metric -------+                    present -+
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/care/port_faults.hpp"
#include "control/gateway/care/vip_presence.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/host/vip_routes.hpp"

namespace penstock::gateway {

// Metrics of the routes, which routing policies translate (docs/operations.md).
inline constexpr uint32_t kServeMetric = 100;
inline constexpr uint32_t kStandByMetric = 200;
inline constexpr uint32_t kDrainMetric = 900;

// The twin that a VIP's route belongs to.
struct PlannedVip {
    IpAddr address;
    NicPortId port;      // unset: no route
    std::string reason;  // then: why
};

struct VipPlanInputs {
    std::span<const ServedVip> vips;
    const TwinSubnets& twins;
    std::span<const PortState> ports;  // by NicPortId
    const drivers::MirroredState& mirror;
};
// A VIP in a twin's subnet belongs to that twin. Any other VIP belongs to the port of its family's default
// route, of several to the one with the lowest metric whose link is up. If the family has no default
// route, the VIP belongs to the first port: clients are not expected behind the others. In the order of
// `vips`.
[[nodiscard]] std::vector<PlannedVip> plan_vips(const VipPlanInputs& inputs);

// The changes that lead from `present` to `wanted`, both sorted, at most about `limit`: first the removals
// of VIPs that have no route any more, then replaced routes, then new ones. The two changes of a replaced
// route follow each other. `wanted` has at most one route of an address. Changes for which `may_try` is
// false are left out.
[[nodiscard]] std::vector<drivers::VipRouteChange> vip_route_changes(
    const std::set<drivers::VipRoute>& present, std::span<const drivers::VipRoute> wanted, size_t limit,
    const std::function<bool(const drivers::VipRouteChange&)>& may_try);

struct VipRouteOptions {
    TwinSubnets twins;
    std::vector<std::string> twin_names;  // by NicPortId, for logs
    bool withdraw_empty = false;
    std::function<Result<std::vector<drivers::VipRoute>>()> read;
    std::function<Result<std::vector<drivers::VipRouteOutcome>>(std::span<const drivers::VipRouteChange>)>
        apply;
};

// Used by one thread.
class VipRouteKeeper {
 public:
    using Clock = std::chrono::steady_clock;
    // Bounds a round to about 25 ms (VipRoutes::apply), so that a carrier loss is not waited for longer.
    static constexpr size_t kChangesPerRound = 2'048;
    static constexpr std::chrono::seconds kRetry{10};
    static constexpr std::chrono::seconds kReadEvery{30};
    static constexpr std::chrono::seconds kReadAgain{1};  // after netlink failed

    explicit VipRouteKeeper(VipRouteOptions options) : options_(std::move(options)) {}

    // Sets the configuration that the workers have now.
    void set(const lb::ServiceTable& table);

    struct Wish {
        uint32_t metric = kServeMetric;
        std::string withheld;  // why no VIP is announced; "": they are
    };
    // One round. True: more changes are pending, call again at once. `mirror` supplies default routes,
    // foreign routes and the host's addresses.
    bool work(const std::shared_ptr<const drivers::MirroredState>& mirror, std::span<const PortState> ports,
              const Wish& wish, Clock::time_point now);
    // Removes all routes.
    void withdraw();

    [[nodiscard]] bool has_routes() const noexcept { return !present_.empty(); }
    // One for each VIP of the configuration, sorted.
    [[nodiscard]] std::vector<VipView> views() const;
    // VIPs that another program has a route for, of any metric; sorted. Its route is left alone.
    [[nodiscard]] const std::vector<IpAddr>& conflicts() const noexcept { return conflicts_; }
    // Whether views() or conflicts() may have changed since the last call.
    [[nodiscard]] bool take_changed() noexcept { return std::exchange(changed_, false); }

 private:
    struct Failure {
        Clock::time_point retry_at;
        std::string reason;
    };
    void plan(const drivers::MirroredState& mirror, std::span<const PortState> ports, const Wish& wish);
    void find_conflicts(const drivers::MirroredState& mirror);
    bool read(Clock::time_point now);
    bool apply(std::span<const drivers::VipRouteChange> changes, Clock::time_point now);
    void note_failure(const drivers::VipRoute& route, drivers::VipRouteOutcome outcome,
                      Clock::time_point now);
    [[nodiscard]] std::string twin_name(NicPortId port) const;

    const VipRouteOptions options_;
    std::vector<ServedVip> served_;
    std::vector<PlannedVip> planned_;
    std::vector<drivers::VipRoute> wanted_;  // sorted
    std::set<drivers::VipRoute> present_;
    std::map<drivers::VipRoute, Failure> failures_;
    std::vector<IpAddr> conflicts_;
    // What planned_ was derived from.
    std::shared_ptr<const drivers::MirroredState> mirror_;
    std::vector<PortState> ports_;
    Wish wish_;
    bool is_planned_ = false;
    bool has_read_ = false;
    bool read_failed_ = false;
    Clock::time_point read_at_{};
    bool changed_ = true;
};

}  // namespace penstock::gateway
