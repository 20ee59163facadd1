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
#include <tuple>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "dataplane/route/route_table.hpp"
#include "drivers/host/interface_address.hpp"
#include "drivers/host/netlink_mirror.hpp"

namespace penstock::gateway {

// The VIPs that the gateway can answer for, sorted. A VIP stays while any of its frontends has a usable
// endpoint. Without one it is withdrawn if an endpoint on another node makes one of its frontends silent here
// (EmptyAction::DropNoLocal), because another gateway may have the endpoint. Otherwise it stays, so that
// clients receive a rejection, unless `withdraw_empty` is set.
[[nodiscard]] std::vector<IpAddr> vips_to_show(const lb::ServiceTable& table, bool withdraw_empty);

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

struct VipPresenceOptions {
    TwinSubnets twins;
    bool withdraw_empty = false;
    // Returns false if the VIP is present already. A new VIP is announced. Unsupported: the kernel does not
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
    void set(const lb::ServiceTable& table) { shown_ = vips_to_show(table, options_.withdraw_empty); }
    // Adds and removes addresses in Linux until it has the wanted ones. `mirror`: the addresses that it has.
    // `withheld`: no VIP is wanted.
    void work(const drivers::MirroredState& mirror, bool withheld, Clock::time_point now);
    // Removes all VIPs.
    void withdraw(const drivers::MirroredState& mirror);

 private:
    using Order = std::tuple<NicPortId, IpAddr, uint8_t>;
    static Order order_of(const route::LocalAddress& vip) {
        return {vip.port, vip.address, vip.prefix_length};
    }
    void add(const route::LocalAddress& vip, const drivers::MirroredState& mirror, Clock::time_point now);
    void remove(const route::LocalAddress& vip, Clock::time_point now);
    void say_failed(const route::LocalAddress& vip, const Error& error, Clock::time_point now);

    const VipPresenceOptions options_;
    std::vector<IpAddr> shown_;
    std::map<Order, Clock::time_point> retry_at_;  // of failed operations
    bool is_supported_ = true;
};

}  // namespace penstock::gateway
