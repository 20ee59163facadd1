// SPDX-License-Identifier: Apache-2.0
// VIPs as kernel routes through the twins, which routing daemons export (PRESENCE-002, LB-018). The wanted
// routes follow from the configuration of the workers, the ports and the level of the gateway; the present
// ones are recorded, and read from Linux at the start, after a failure, after a change of a link, and
// periodically. Only the difference is applied: a VIP's old route is removed when Linux has its new one.
//
//   served VIPs --+
//   SNAT of shares+--> plan_vips() --> wanted --+--> vip_route_changes() --> VipRoutes::apply()
//   ports, twins -+                    present -+
//   level, shares +
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
#include "control/gateway/shares/gateway_shares.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/host/vip_routes.hpp"

namespace penstock::gateway {

// Metrics of the routes, which routing policies translate (docs/operations.md).
inline constexpr uint32_t kServeMetric = 100;
inline constexpr uint32_t kStandByMetric = 200;
inline constexpr uint32_t kDrainMetric = 900;  // also of a primary that returns to its share (ShareReturn)

// The twin that a VIP's route belongs to.
struct PlannedVip {
    IpAddr address;
    NicPortId port;      // unset: no route
    std::string reason;  // then: why
    uint32_t metric = 0;
    bool is_of_others = false;  // by the plan of shares
    bool is_vip = true;         // false: it is only a SNAT address of a share
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

struct VipRouteLimits {
    size_t removals = 0;  // of routes that have no successor
    size_t others = 0;
};
struct VipRouteRules {
    VipRouteLimits at_most;
    // Changes for which it is false are left out.
    std::function<bool(const drivers::VipRouteChange&)> may_try;
    // Whether a route by this port may stay until its successor is present. Otherwise it is removed directly
    // after the attempt to add the successor.
    std::function<bool(NicPortId)> may_stay;
};
// The next changes on the way from `present` to `wanted`, both sorted: first the removals of VIPs that have
// no route any more, then replaced routes, then new ones. A replaced route is removed by a later call, when
// its successor is in `present`. `wanted` has at most one route of an address.
[[nodiscard]] std::vector<drivers::VipRouteChange> vip_route_changes(
    const std::set<drivers::VipRoute>& present, std::span<const drivers::VipRoute> wanted,
    const VipRouteRules& rules);

struct VipRouteOptions {
    TwinSubnets twins;
    std::vector<std::string> twin_names;  // by NicPortId, for logs
    bool withdraw_empty = false;
    std::function<Result<std::vector<drivers::VipRoute>>()> read;
    std::function<std::vector<drivers::VipRouteOutcome>(std::span<const drivers::VipRouteChange>)> apply;
    std::function<void(std::span<const drivers::VipNeighbour>)> remove_neighbours;
};

// Used by one thread.
class VipRouteKeeper {
 public:
    using Clock = std::chrono::steady_clock;
    // A round takes about 25 ms at most (VipRoutes::apply), so that a carrier loss is not waited for longer.
    // Nothing is more urgent than a removal.
    static constexpr VipRouteLimits kPerRound{.removals = 16'384, .others = 2'048};
    static constexpr std::chrono::seconds kRetry{10};
    static constexpr std::chrono::seconds kReadEvery{30};
    static constexpr std::chrono::seconds kTryAgain{1};  // a change whose answer was lost

    explicit VipRouteKeeper(VipRouteOptions options) : options_(std::move(options)) {}

    // Sets the configuration that the workers have now.
    void set(const lb::ServiceTable& table);

    struct Wish {
        uint32_t metric = kServeMetric;
        std::string withheld;  // why no VIP is announced; "": they are
        // The shares of several gateways; null: all VIPs are this gateway's. An heir has kStandByMetric in
        // place of kServeMetric. SNAT addresses of shares have routes as VIPs have, also without a Service,
        // from the first set() on.
        std::shared_ptr<const GatewayShares> shares = {};
        uint64_t returning = 0;  // ShareReturn::returning()
        bool operator==(const Wish&) const = default;
    };
    // One round. True: more changes are pending, call again at once. `mirror` supplies default routes,
    // foreign routes and the host's addresses.
    bool work(const std::shared_ptr<const drivers::MirroredState>& mirror, std::span<const PortState> ports,
              const Wish& wish, Clock::time_point now);
    // Removes all routes.
    void withdraw();

    [[nodiscard]] bool has_routes() const noexcept { return !present_.empty(); }
    // The VIPs of the configuration and the SNAT addresses of shares, each address once, sorted.
    [[nodiscard]] std::vector<ServedVip> addresses(const Wish& wish) const;
    // One for each VIP of the configuration, and for each SNAT address of a share in which the gateway has a
    // role, sorted.
    [[nodiscard]] std::vector<VipView> views() const;
    // Addresses of views() that another program has a route for, of any metric; sorted. Its route is left
    // alone.
    [[nodiscard]] const std::vector<IpAddr>& conflicts() const noexcept { return conflicts_; }
    // Whether views() or conflicts() may have changed since the last call.
    [[nodiscard]] bool take_changed() noexcept { return std::exchange(changed_, false); }

 private:
    struct Failure {
        Clock::time_point retry_at;
        std::string reason;
        bool is_removal = false;
    };
    void plan(const drivers::MirroredState& mirror, std::span<const PortState> ports, const Wish& wish);
    void find_conflicts(const drivers::MirroredState& mirror);
    bool read(Clock::time_point now);
    [[nodiscard]] std::vector<drivers::VipRouteChange> changes(Clock::time_point now) const;
    void apply(std::span<const drivers::VipRouteChange> changes, Clock::time_point now);
    // Whether it is the first failure of this route.
    bool note_failure(const drivers::VipRouteChange& change, drivers::VipRouteOutcome outcome,
                      Clock::time_point now);
    void note_removed(const drivers::VipRoute& route);
    bool remove_neighbours();
    [[nodiscard]] std::string twin_name(NicPortId port) const;
    // "VIP 192.0.2.1" or "SNAT address 192.0.2.1", for logs.
    [[nodiscard]] std::string name_of(const IpAddr& address) const;
    void log_changes(const std::string& what, std::span<const IpAddr> addresses) const;

    const VipRouteOptions options_;
    bool has_configuration_ = false;
    std::vector<ServedVip> served_;
    std::vector<PlannedVip> planned_;
    std::set<IpAddr> snat_only_;             // planned once, by a share, and no VIPs; for logs
    std::vector<drivers::VipRoute> wanted_;  // sorted
    std::set<drivers::VipRoute> present_;
    std::map<drivers::VipRoute, Failure> failures_;
    std::set<drivers::VipNeighbour> unused_neighbours_;  // no present route has them
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
