// SPDX-License-Identifier: Apache-2.0
// VIPs on TAP twins, so that hosts on the twins' links resolve them by ARP and ND, and routing daemons can
// export them (LB-018). The wanted state follows from the configuration of the workers, the present state
// from Linux. Only the difference is applied. The result therefore does not depend on earlier operations, and
// addresses that other programs added are left alone.
//
//   frontends of class L and X, in force --> vips_to_show() --> place_vips() --> wanted --+
//   drained, stopped worker, withheld: none                     twins' subnets            +--> add, announce;
//                                                       marked addresses in Linux --------+    remove
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "control/gateway/care/announcement_schedule.hpp"
#include "control/gateway/compile/compile.hpp"
#include "dataplane/route/route_table.hpp"
#include "drivers/host/interface_address.hpp"
#include "drivers/host/netlink_mirror.hpp"

namespace penstock::gateway {

// A VIP of the configuration.
struct ServedVip {
    enum class Shown : uint8_t {
        Yes,
        Elsewhere,  // all endpoints of a frontend are on other nodes
        Empty,      // no endpoint at all, with `withdraw_empty`
    };
    IpAddr address;
    Shown shown = Shown::Yes;
    bool operator==(const ServedVip&) const = default;
};
// Why a VIP is not shown; "" for Yes.
[[nodiscard]] const char* text_of(ServedVip::Shown shown) noexcept;

// All LoadBalancer and external IPs, sorted, and whether the gateway can answer for them (LB-018). A VIP
// is shown while any of its frontends has a usable endpoint. Without one it is not if an endpoint on
// another node makes one of its frontends silent here (EmptyAction::DropNoLocal), because another gateway
// may have the endpoint. Otherwise it is, so that clients receive a rejection, unless `withdraw_empty` is
// set.
[[nodiscard]] std::vector<ServedVip> served_vips(const lb::ServiceTable& table, bool withdraw_empty);
// Those that are shown.
[[nodiscard]] std::vector<IpAddr> vips_to_show(const lb::ServiceTable& table, bool withdraw_empty);

// The presence of a VIP, for status and metrics.
struct VipView {
    IpAddr address;
    bool is_present = false;
    NicPortId port;            // of the twin, if present
    uint32_t metric = 0;       // of its route; 0: none
    bool is_answered = false;  // workers answer ARP and ND for it
    std::string reason;        // why it is not present, or not as wanted; "": it is
    bool has_foreign_route = false;
    bool is_of_others = false;  // by the plan of shares, other gateways announce it
    bool is_vip = true;         // false: it is only a SNAT address of a share
    bool operator==(const VipView&) const = default;
};
inline constexpr const char* kVipOfHost = "the address belongs to the gateway host";

// By NicPort: the addresses from --port address= of the twin.
using TwinSubnets = std::vector<std::vector<drivers::InterfaceAddress>>;

// The twin with the longest subnet that contains `address`, the first of equal ones.
[[nodiscard]] std::optional<NicPortId> twin_around(const IpAddr& address, const TwinSubnets& twins);

// Each VIP on the twin with the longest subnet that contains it, the first of equal ones; sorted. Excluded
// are VIPs that the host has itself (`own`), and VIPs outside all subnets: neighbours do not resolve those,
// but send their packets to the gateway by a route.
[[nodiscard]] std::vector<route::LocalAddress> place_vips(std::span<const IpAddr> vips,
                                                          const TwinSubnets& twins,
                                                          std::span<const route::LocalAddress> own);

// Limit of VIPs as addresses of one twin. Linux examines an interface's IPv4 addresses one after the
// other, and a routing daemon took 11.8 s for 10,000 of them, 0.13 s for 1,000.
inline constexpr size_t kVipAddressesMax = 1'000;

// Removes from `placed` (sorted) what exceeds `limit` on a twin, and returns it, sorted. VIPs in `present`
// (sorted) take precedence, so that a new VIP replaces none.
[[nodiscard]] std::vector<route::LocalAddress> limit_vips(std::vector<route::LocalAddress>& placed,
                                                          std::span<const route::LocalAddress> present,
                                                          size_t limit = kVipAddressesMax);

struct VipPresenceOptions {
    TwinSubnets twins;
    bool withdraw_empty = false;
    // Returns false if the VIP is present already. Unsupported: the kernel does not
    // support it; add is not called again.
    std::function<Result<bool>(const route::LocalAddress& vip)> add;
    std::function<Status(const route::LocalAddress& vip)> remove;
    std::function<void(const route::LocalAddress& vip, const MacAddr& mac)> announce;
};

// Used by one thread.
class VipPresence {
 public:
    using Clock = std::chrono::steady_clock;
    // Retry interval after a failure. Each failure is logged once.
    static constexpr std::chrono::seconds kRetry{30};

    explicit VipPresence(VipPresenceOptions options) : options_(std::move(options)) {}

    // Sets the configuration that the workers have now.
    void set(const lb::ServiceTable& table) { served_ = served_vips(table, options_.withdraw_empty); }
    // Adds and removes addresses in Linux until it has the wanted ones, and announces them (PRESENCE-004).
    // `mirror`: the addresses that it has. `withheld`: why no VIP is wanted; "": they are.
    void work(const drivers::MirroredState& mirror, const std::string& withheld, Clock::time_point now);
    // Removes all VIPs.
    void withdraw(const drivers::MirroredState& mirror);
    // When a VIP must be announced next; empty: never.
    [[nodiscard]] std::optional<Clock::time_point> next() const { return announcements_.next(); }
    // VIPs that exceed kVipAddressesMax on their twin, or all, if Linux does not support them; sorted.
    // Workers answer for them (vip_responder.hpp).
    [[nodiscard]] const std::vector<route::LocalAddress>& refused() const noexcept { return refused_; }
    // One for each VIP of the configuration, as of the last work().
    [[nodiscard]] std::vector<VipView> views(const drivers::MirroredState& mirror) const;

 private:
    using Order = std::tuple<NicPortId, IpAddr, uint8_t>;
    static Order order_of(const route::LocalAddress& vip) {
        return {vip.port, vip.address, vip.prefix_length};
    }
    void add(const route::LocalAddress& vip, Clock::time_point now);
    void announce(const drivers::MirroredState& mirror, Clock::time_point now);
    void remove(const route::LocalAddress& vip, Clock::time_point now);
    void say_failed(const route::LocalAddress& vip, const Error& error, Clock::time_point now);

    const VipPresenceOptions options_;
    std::vector<ServedVip> served_;
    std::vector<route::LocalAddress> refused_;
    std::string withheld_;
    std::map<Order, Clock::time_point> retry_at_;  // of failed operations
    AnnouncementSchedule announcements_;
    bool is_supported_ = true;
};

}  // namespace penstock::gateway
