// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/vip_route_keeper.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

using drivers::VipRoute;
using drivers::VipRouteChange;
using drivers::VipRouteOutcome;

// VIPs of one change that are logged individually. Above that, the number is logged.
constexpr size_t kLoggedVips = 8;

bool is_up(std::span<const PortState> ports, NicPortId port) {
    const auto found = std::ranges::find(ports, port, &PortState::id);
    return found != ports.end() && found->is_up && !found->is_removed;
}

// The best port of the family's default routes that is up, of multipath routes any hop. Without a default
// route the first port, if it is up.
std::optional<NicPortId> default_port(const VipPlanInputs& inputs, IpFamily family) {
    const IpAddr any = family == IpFamily::V4 ? IpAddr::v4(0, 0, 0, 0) : IpAddr();
    const auto prefix = Prefix::make(any, 0);
    const auto routes =
        std::ranges::equal_range(inputs.mirror.routes, *prefix, {}, &route::Route::destination);
    bool has_route = false;
    for (const route::Route& route : routes) {  // sorted by metric
        if (!route.egress.is_set()) {
            continue;
        }
        has_route = true;
        if (is_up(inputs.ports, route.egress)) {
            return route.egress;
        }
        for (const PortState& port : inputs.ports) {
            if ((route.other_egress & route::set_of(port.id)) != 0 && is_up(inputs.ports, port.id)) {
                return port.id;
            }
        }
    }
    constexpr NicPortId kFirst{0};
    return !has_route && is_up(inputs.ports, kFirst) ? std::optional(kFirst) : std::nullopt;
}

bool is_host_address(const drivers::MirroredState& mirror, const IpAddr& address) {
    return std::ranges::find(mirror.addresses, address, &route::LocalAddress::address) !=
           mirror.addresses.end();
}

void log_changes(const char* what, std::span<const IpAddr> vips) {
    if (vips.size() > kLoggedVips) {
        log::get("control").info("{} VIPs are {}", vips.size(), what);
        return;
    }
    for (const IpAddr& vip : vips) {
        log::get("control").info("VIP {} is {}", vip.to_string(), what);
    }
}

}  // namespace

std::vector<PlannedVip> plan_vips(const VipPlanInputs& inputs) {
    std::map<IpFamily, std::optional<NicPortId>> by_default;
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        by_default[family] = default_port(inputs, family);
    }
    std::vector<PlannedVip> planned;
    planned.reserve(inputs.vips.size());
    for (const ServedVip& vip : inputs.vips) {
        PlannedVip& plan = planned.emplace_back(PlannedVip{vip.address, {}, text_of(vip.shown)});
        if (vip.shown != ServedVip::Shown::Yes) {
            continue;
        }
        if (is_host_address(inputs.mirror, vip.address)) {
            plan.reason = kVipOfHost;
            continue;
        }
        if (const auto around = twin_around(vip.address, inputs.twins)) {
            if (is_up(inputs.ports, *around)) {
                plan.port = *around;
            } else {
                plan.reason = "the port of its subnet is down or removed";
            }
        } else if (const auto port = by_default[vip.address.is_v4() ? IpFamily::V4 : IpFamily::V6]) {
            plan.port = *port;
        } else {
            plan.reason = "the port of the default route is down or removed";
        }
    }
    return planned;
}

std::vector<VipRouteChange> vip_route_changes(const std::set<VipRoute>& present,
                                              std::span<const VipRoute> wanted, size_t limit,
                                              const std::function<bool(const VipRouteChange&)>& may_try) {
    using Kind = VipRouteChange::Kind;
    std::vector<VipRouteChange> removed, replaced, added;
    const auto want = [&](std::vector<VipRouteChange>& list, Kind kind, const VipRoute& route) {
        if (const VipRouteChange change{kind, route}; list.size() < limit && may_try(change)) {
            list.push_back(change);
        }
    };
    auto next = wanted.begin();
    for (auto at = present.begin(); at != present.end();) {
        const IpAddr& address = at->address;
        const auto end =
            std::find_if(at, present.end(), [&](const VipRoute& route) { return route.address != address; });
        for (; next != wanted.end() && next->address < address; ++next) {
            want(added, Kind::Add, *next);
        }
        if (next == wanted.end() || next->address != address) {
            std::for_each(at, end, [&](const VipRoute& route) { want(removed, Kind::Remove, route); });
        } else {
            const VipRoute& route = *next++;
            if (std::find(at, end, route) == end) {
                const bool has_metric =
                    std::any_of(at, end, [&](const VipRoute& other) { return other.metric == route.metric; });
                want(replaced, has_metric ? Kind::AddBeside : Kind::Add, route);
            }
            std::for_each(at, end, [&](const VipRoute& other) {
                if (other != route) {
                    want(replaced, Kind::Remove, other);
                }
            });
        }
        at = end;
    }
    std::for_each(next, wanted.end(), [&](const VipRoute& route) { want(added, Kind::Add, route); });
    std::vector<VipRouteChange> changes = std::move(removed);
    for (const auto* list : {&replaced, &added}) {
        const size_t room = limit - std::min(limit, changes.size());
        // Not between the two changes of one VIP.
        size_t count = std::min(room, list->size());
        while (count > 0 && count < list->size() &&
               (*list)[count].route.address == (*list)[count - 1].route.address) {
            ++count;
        }
        changes.insert(changes.end(), list->begin(), list->begin() + static_cast<std::ptrdiff_t>(count));
    }
    return changes;
}

void VipRouteKeeper::set(const lb::ServiceTable& table) {
    served_ = served_vips(table, options_.withdraw_empty);
    is_planned_ = false;
}

bool VipRouteKeeper::work(const std::shared_ptr<const drivers::MirroredState>& mirror,
                          std::span<const PortState> ports, const Wish& wish, Clock::time_point now) {
    const bool are_ports_new = !std::ranges::equal(ports, ports_);
    if (!is_planned_ || are_ports_new || mirror != mirror_ || wish.metric != wish_.metric ||
        wish.withheld != wish_.withheld) {
        plan(*mirror, ports, wish);
        mirror_ = mirror;
        ports_.assign(ports.begin(), ports.end());
        wish_ = wish;
        is_planned_ = true;
    }
    if (are_ports_new) {
        read_at_ = now;  // Linux removes the routes of an interface that is set down
    }
    if (!has_read_ && (now < read_at_ || !read(now))) {
        return false;
    }
    const auto may_try = [&](const VipRouteChange& change) {
        const auto failed = failures_.find(change.route);
        return failed == failures_.end() || failed->second.retry_at <= now;
    };
    auto changes = vip_route_changes(present_, wanted_, kChangesPerRound, may_try);
    // Withdrawals must not wait for a reading of many routes.
    if (changes.empty() && now >= read_at_ && read(now)) {
        changes = vip_route_changes(present_, wanted_, kChangesPerRound, may_try);
    }
    return !changes.empty() && apply(changes, now);
}

void VipRouteKeeper::plan(const drivers::MirroredState& mirror, std::span<const PortState> ports,
                          const Wish& wish) {
    planned_ = plan_vips({served_, options_.twins, ports, mirror});
    wanted_.clear();
    for (PlannedVip& vip : planned_) {
        if (vip.port.is_set() && !wish.withheld.empty()) {
            vip.port = {};
            vip.reason = wish.withheld;
        }
        if (vip.port.is_set()) {
            wanted_.push_back({vip.address, vip.port, wish.metric});
        }
    }
    std::ranges::sort(wanted_);
    std::erase_if(failures_, [&](const auto& failure) {
        return !std::ranges::binary_search(wanted_, failure.first) && !present_.contains(failure.first);
    });
    find_conflicts(mirror);
    changed_ = true;
}

void VipRouteKeeper::find_conflicts(const drivers::MirroredState& mirror) {
    std::vector<IpAddr> found;
    for (const ServedVip& vip : served_) {
        const auto prefix = Prefix::make(vip.address, static_cast<unsigned>(vip.address.bits()));
        const auto foreign = std::ranges::equal_range(mirror.routes, *prefix, {}, &route::Route::destination);
        if (!foreign.empty()) {
            found.push_back(vip.address);
            if (!std::ranges::binary_search(conflicts_, vip.address)) {
                log::get("control").warn(
                    "VIP {}: another program has a route for it with metric {}, which is left alone; packets "
                    "of this host follow the lower metric",
                    vip.address.to_string(), foreign.front().metric);
            }
        }
    }
    conflicts_ = std::move(found);
}

bool VipRouteKeeper::read(Clock::time_point now) {
    auto routes = options_.read();
    if (!routes) {
        read_at_ = now + kRetry;
        if (!std::exchange(read_failed_, true)) {
            log::get("control").warn("{}; retried every {} s", routes.error().what, kRetry.count());
        }
        return false;
    }
    read_failed_ = false;
    read_at_ = now + kReadEvery;
    present_ = std::set<VipRoute>(routes->begin(), routes->end());
    has_read_ = true;
    changed_ = true;
    return true;
}

bool VipRouteKeeper::apply(std::span<const VipRouteChange> changes, Clock::time_point now) {
    const auto outcomes = options_.apply(changes);
    changed_ = true;
    if (!outcomes) {
        log::get("control").warn("{}; retried in {} s", outcomes.error().what, kReadAgain.count());
        // Unknown which changes took effect.
        has_read_ = false;
        read_at_ = now + kReadAgain;
        return false;
    }
    std::vector<IpAddr> announced, withdrawn;
    for (size_t i = 0; i < changes.size(); ++i) {
        const VipRouteChange& change = changes[i];
        if ((*outcomes)[i] != VipRouteOutcome::Done) {
            note_failure(change.route, (*outcomes)[i], now);
            continue;
        }
        failures_.erase(change.route);
        if (change.kind == VipRouteChange::Kind::Remove) {
            present_.erase(change.route);
            withdrawn.push_back(change.route.address);
        } else {
            present_.insert(change.route);
            announced.push_back(change.route.address);
        }
    }
    // A replaced route is both added and removed.
    std::erase_if(withdrawn, [&](const IpAddr& vip) {
        const auto at = present_.lower_bound(VipRoute{vip, NicPortId{0}, 0});
        return at != present_.end() && at->address == vip;
    });
    log_changes(("announced with metric " + std::to_string(wish_.metric)).c_str(), announced);
    log_changes("not announced any more", withdrawn);
    return true;
}

void VipRouteKeeper::note_failure(const VipRoute& route, VipRouteOutcome outcome, Clock::time_point now) {
    const bool is_taken = outcome == VipRouteOutcome::Exists;
    const std::string reason =
        is_taken ? "another route has this prefix and metric" : "the kernel refused the change of its route";
    const bool is_new = !failures_.contains(route);
    failures_.insert_or_assign(route, Failure{now + kRetry, reason});
    read_at_ = std::min(read_at_, now);  // it may be a route of an earlier process
    if (is_new) {
        log::get("control").warn("VIP {} by {} with metric {}: {}; retried every {} s",
                                 route.address.to_string(), twin_name(route.port), route.metric, reason,
                                 kRetry.count());
    }
}

void VipRouteKeeper::withdraw() {
    std::vector<VipRouteChange> changes;
    for (const VipRoute& route : present_) {
        changes.push_back({VipRouteChange::Kind::Remove, route});
    }
    if (!changes.empty()) {
        static_cast<void>(options_.apply(changes));  // otherwise they end with the twins
    }
    present_.clear();
    wanted_.clear();
    changed_ = true;
}

std::string VipRouteKeeper::twin_name(NicPortId port) const {
    return port.value < options_.twin_names.size() ? options_.twin_names[port.value] : std::string("no twin");
}

std::vector<VipView> VipRouteKeeper::views() const {
    std::vector<VipView> views;
    views.reserve(planned_.size());
    for (const PlannedVip& vip : planned_) {
        VipView& view = views.emplace_back(VipView{.address = vip.address, .reason = vip.reason});
        const auto route = present_.lower_bound(VipRoute{vip.address, NicPortId{0}, 0});
        if (route != present_.end() && route->address == vip.address) {
            view.port = route->port;
            view.metric = route->metric;
            view.is_present = true;
        } else if (const auto failed = failures_.lower_bound(VipRoute{vip.address, NicPortId{0}, 0});
                   failed != failures_.end() && failed->first.address == vip.address) {
            view.reason = failed->second.reason;
        }
        view.has_foreign_route = std::ranges::binary_search(conflicts_, vip.address);
    }
    return views;
}

}  // namespace penstock::gateway
