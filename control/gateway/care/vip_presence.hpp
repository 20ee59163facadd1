// Which VIPs are on which TAP twins, so that the twins' links find them by ARP and ND and routing daemons can export them (LB-018). What
// shall be there follows from what workers have, and what is there is what Linux says: the difference is worked off, so that nothing
// depends on what was done before, and what others put there is left alone.
//
//   frontends of class L and X, in force --> vips_to_show() --> place_vips() --> wanted --+
//   drained, stopped worker, withheld: none                        twins' subnets           +--> add, announce; remove
//                                                              marked addresses in Linux -+
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

// The VIPs that the gateway can answer for, sorted. One stays while any of its frontends has a usable endpoint. With none it goes where an
// endpoint on another node keeps one of its frontends silent here (EmptyAction::DropNoLocal), because another gateway may have the
// endpoint; else it stays, so that clients are told, but for `withdraw_empty`.
[[nodiscard]] std::vector<IpAddr> vips_to_show(const lb::ServiceTable& table, bool withdraw_empty);

// By NicPort: what --port address= gives the twin.
using TwinSubnets = std::vector<std::vector<drivers::InterfaceAddress>>;

// The twin with the longest subnet around `address`, the first of equal ones.
[[nodiscard]] std::optional<NicPortId> twin_around(const IpAddr& address, const TwinSubnets& twins);

// Each VIP on the twin with the longest subnet around it, the first of equal ones; sorted. None that the host has itself (`own`), and none
// outside all subnets: neighbours do not ask for it, but send it to the gateway by a route.
[[nodiscard]] std::vector<route::LocalAddress> place_vips(std::span<const IpAddr> vips,
                                                          const TwinSubnets& twins,
                                                          std::span<const route::LocalAddress> own);

struct VipPresenceOptions {
    TwinSubnets twins;
    bool withdraw_empty = false;
    // False: it is there already. What is new is announced. Unsupported: this kernel cannot, and is not asked again.
    std::function<Result<bool>(const route::LocalAddress& vip)> add;
    std::function<Status(const route::LocalAddress& vip)> remove;
    std::function<void(const route::LocalAddress& vip, const MacAddr& mac)> announce;
};

// One thread.
class VipPresence {
 public:
    using Clock = std::chrono::steady_clock;
    // What failed is tried again no sooner, and said once each time.
    static constexpr std::chrono::seconds kRetry{30};

    explicit VipPresence(VipPresenceOptions options) : options_(std::move(options)) {}

    // What workers have now.
    void set(const lb::ServiceTable& table) { shown_ = vips_to_show(table, options_.withdraw_empty); }
    // Makes Linux have what it shall have; `mirror` is what it has. `withheld`: no VIP shall be there.
    void work(const drivers::MirroredState& mirror, bool withheld, Clock::time_point now);
    // Leaves nothing behind.
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
    std::map<Order, Clock::time_point> retry_at_;  // what failed
    bool is_supported_ = true;
};

}  // namespace penstock::gateway
