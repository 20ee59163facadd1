// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/vip_route_keeper.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>

#include "control/gateway/shares/share_snat.hpp"
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

// The level of a VIP that other gateways may serve. A spread one is announced by each gateway of the plan.
void apply_share(const GatewayShares& shares, uint64_t returning, PlannedVip& vip) {
    if (shares.is_spread(vip.address) && shares.plan().gateway(shares.gateway_name()) != nullptr) {
        vip.metric = returning != 0 ? std::max(vip.metric, kDrainMetric) : vip.metric;
        return;
    }
    const uint8_t share = shares.share_of(vip.address);
    const GatewayShares::Part& part = shares.part_in(share);
    const bool returns = (returning >> share & 1) != 0;
    if (part.role == shares::Role::Primary && returns) {
        vip.metric = std::max(vip.metric, kDrainMetric);
    } else if (part.role == shares::Role::Heir && returns) {
        // Not at the level of a primary that returns: routers would use both.
        vip.port = {};
        vip.reason = "the gateway returns to share " + std::to_string(share);
    } else if (part.role == shares::Role::Heir) {
        vip.metric = std::max(vip.metric, kStandByMetric);
    } else if (part.role == shares::Role::None) {
        vip.port = {};
        vip.reason = part.reason;
        vip.is_of_others = true;
    }
}

}  // namespace

// Routes are of VIPs, and of SNAT addresses of shares.
std::string VipRouteKeeper::name_of(const IpAddr& address) const {
    return (snat_only_.contains(address) ? "SNAT address " : "VIP ") + address.to_string();
}

void VipRouteKeeper::log_changes(const std::string& what, std::span<const IpAddr> addresses) const {
    if (addresses.size() > kLoggedVips) {
        const auto snat = std::ranges::count_if(
            addresses, [&](const IpAddr& address) { return snat_only_.contains(address); });
        log::get("control").info("{} VIPs{} are {}", addresses.size() - static_cast<size_t>(snat),
                                 snat == 0 ? "" : " and " + std::to_string(snat) + " SNAT addresses", what);
        return;
    }
    for (const IpAddr& address : addresses) {
        log::get("control").info("{} is {}", name_of(address), what);
    }
}

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
                                              std::span<const VipRoute> wanted, const VipRouteRules& rules) {
    using Kind = VipRouteChange::Kind;
    std::vector<VipRouteChange> removed, replaced, added;
    const auto want = [&](std::vector<VipRouteChange>& list, Kind kind, const VipRoute& route) {
        if (const VipRouteChange change{kind, route}; rules.may_try(change)) {
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
            const bool is_present = std::find(at, end, route) != end;
            if (!is_present) {
                const bool has_metric =
                    std::any_of(at, end, [&](const VipRoute& other) { return other.metric == route.metric; });
                want(replaced, has_metric ? Kind::AddBeside : Kind::Add, route);
            }
            std::for_each(at, end, [&](const VipRoute& other) {
                if (other != route && (is_present || !rules.may_stay(other.port))) {
                    want(replaced, Kind::Remove, other);
                }
            });
        }
        at = end;
    }
    std::for_each(next, wanted.end(), [&](const VipRoute& route) { want(added, Kind::Add, route); });
    std::vector<VipRouteChange> changes = std::move(removed);
    changes.resize(std::min(changes.size(), rules.at_most.removals));
    size_t room = rules.at_most.others;
    for (const auto* list : {&replaced, &added}) {
        size_t count = std::min(room, list->size());
        // Not between the changes of one VIP.
        while (count > 0 && count < list->size() &&
               (*list)[count].route.address == (*list)[count - 1].route.address) {
            ++count;
        }
        changes.insert(changes.end(), list->begin(), list->begin() + static_cast<std::ptrdiff_t>(count));
        room -= std::min(room, count);
    }
    return changes;
}

void VipRouteKeeper::set(const lb::ServiceTable& table) {
    served_ = served_vips(table, options_.withdraw_empty);
    has_configuration_ = true;
    is_planned_ = false;
}

bool VipRouteKeeper::work(const std::shared_ptr<const drivers::MirroredState>& mirror,
                          std::span<const PortState> ports, const Wish& wish, Clock::time_point now) {
    const bool are_ports_new = !std::ranges::equal(ports, ports_);
    if (!is_planned_ || are_ports_new || mirror != mirror_ || wish != wish_) {
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
    auto next = changes(now);
    // Withdrawals must not wait for a reading of many routes.
    if (next.empty() && now >= read_at_ && read(now)) {
        next = changes(now);
    }
    if (next.empty()) {
        return remove_neighbours();
    }
    apply(next, now);
    return true;
}

std::vector<VipRouteChange> VipRouteKeeper::changes(Clock::time_point now) const {
    return vip_route_changes(present_, wanted_,
                             {.at_most = kPerRound,
                              .may_try =
                                  [&](const VipRouteChange& change) {
                                      const auto failed = failures_.find(change.route);
                                      return failed == failures_.end() || failed->second.retry_at <= now ||
                                             failed->second.is_removal !=
                                                 (change.kind == VipRouteChange::Kind::Remove);
                                  },
                              .may_stay = [&](NicPortId port) { return is_up(ports_, port); }});
}

void VipRouteKeeper::plan(const drivers::MirroredState& mirror, std::span<const PortState> ports,
                          const Wish& wish) {
    const std::vector<ServedVip> all = addresses(wish);
    planned_ = plan_vips({all, options_.twins, ports, mirror});
    wanted_.clear();
    for (PlannedVip& vip : planned_) {
        vip.is_vip = std::ranges::binary_search(served_, vip.address, {}, &ServedVip::address);
        if (vip.is_vip) {
            snat_only_.erase(vip.address);
        } else {
            snat_only_.insert(vip.address);
        }
        if (vip.port.is_set() && !wish.withheld.empty()) {
            vip.port = {};
            vip.reason = wish.withheld;
        }
        vip.metric = wish.metric;
        if (wish.shares != nullptr) {
            apply_share(*wish.shares, wish.returning, vip);
        }
        if (vip.port.is_set()) {
            wanted_.push_back({vip.address, vip.port, vip.metric});
        }
    }
    std::ranges::sort(wanted_);
    std::erase_if(failures_, [&](const auto& failure) {
        return !std::ranges::binary_search(wanted_, failure.first) && !present_.contains(failure.first);
    });
    find_conflicts(mirror);
    changed_ = true;
}

std::vector<ServedVip> VipRouteKeeper::addresses(const Wish& wish) const {
    if (wish.shares == nullptr || !has_configuration_) {
        return served_;
    }
    std::map<IpAddr, ServedVip> all;
    for (const IpAddr& snat : announced_snat(*wish.shares)) {
        all.emplace(snat, ServedVip{.address = snat});
    }
    for (const ServedVip& vip : served_) {
        all.emplace(vip.address, vip);
    }
    std::vector<ServedVip> sorted;
    sorted.reserve(all.size());
    std::ranges::copy(std::views::values(all), std::back_inserter(sorted));
    return sorted;
}

void VipRouteKeeper::find_conflicts(const drivers::MirroredState& mirror) {
    std::vector<IpAddr> found;
    for (const PlannedVip& vip : planned_) {
        const auto prefix = Prefix::make(vip.address, static_cast<unsigned>(vip.address.bits()));
        const auto foreign = std::ranges::equal_range(mirror.routes, *prefix, {}, &route::Route::destination);
        if (!foreign.empty()) {
            found.push_back(vip.address);
            if (!std::ranges::binary_search(conflicts_, vip.address)) {
                log::get("control").warn(
                    "{}: another program has a route for it with metric {}, which is left alone; packets "
                    "of this host follow the lower metric",
                    name_of(vip.address), foreign.front().metric);
            }
        }
    }
    conflicts_ = std::move(found);
}

bool VipRouteKeeper::read(Clock::time_point now) {
    auto routes = options_.read();
    if (!routes) {
        const auto wait = has_read_ ? kRetry : kTryAgain;  // before the first reading nothing is announced
        read_at_ = now + wait;
        if (!std::exchange(read_failed_, true)) {
            log::get("control").warn("{}; retried every {} s", routes.error().what, wait.count());
        }
        return false;
    }
    read_failed_ = false;
    read_at_ = now + kReadEvery;
    const auto before = std::exchange(present_, std::set<VipRoute>(routes->begin(), routes->end()));
    for (const VipRoute& route : before) {
        if (!present_.contains(route)) {
            note_removed(route);
        }
    }
    has_read_ = true;
    changed_ = true;
    return true;
}

void VipRouteKeeper::apply(std::span<const VipRouteChange> changes, Clock::time_point now) {
    const auto outcomes = options_.apply(changes);
    changed_ = true;
    std::map<uint32_t, std::vector<IpAddr>> announced;  // by metric
    std::vector<IpAddr> withdrawn;
    size_t failed = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
        const VipRouteChange& change = changes[i];
        if (outcomes[i] != VipRouteOutcome::Done) {
            if (note_failure(change, outcomes[i], now) && ++failed <= kLoggedVips) {
                const Failure& failure = failures_.at(change.route);
                log::get("control").warn(
                    "{} by {} with metric {}: {}; retried every {} s", name_of(change.route.address),
                    twin_name(change.route.port), change.route.metric, failure.reason,
                    std::chrono::ceil<std::chrono::seconds>(failure.retry_at - now).count());
            }
            continue;
        }
        failures_.erase(change.route);
        if (change.kind == VipRouteChange::Kind::Remove) {
            present_.erase(change.route);
            note_removed(change.route);
            withdrawn.push_back(change.route.address);
        } else {
            present_.insert(change.route);
            unused_neighbours_.erase({change.route.address, change.route.port});
            announced[change.route.metric].push_back(change.route.address);
        }
    }
    if (failed > kLoggedVips) {
        log::get("control").warn("the routes of {} further addresses were not changed", failed - kLoggedVips);
    }
    // The old route of a VIP that has a new one.
    std::erase_if(withdrawn, [&](const IpAddr& vip) {
        const auto at = present_.lower_bound(VipRoute{vip, NicPortId{0}, 0});
        return at != present_.end() && at->address == vip;
    });
    for (const auto& [metric, vips] : announced) {
        log_changes("announced with metric " + std::to_string(metric), vips);
    }
    log_changes("not announced any more", withdrawn);
}

bool VipRouteKeeper::note_failure(const VipRouteChange& change, VipRouteOutcome outcome,
                                  Clock::time_point now) {
    const bool is_new = !failures_.contains(change.route);
    Failure failure{now + kRetry, "the kernel refused the change of its route",
                    change.kind == VipRouteChange::Kind::Remove};
    if (outcome == VipRouteOutcome::Exists) {
        failure.reason = "another route has this prefix and metric";
    } else if (outcome == VipRouteOutcome::Unknown) {
        failure.reason = "the kernel's answer to the change of its route was lost";
        failure.retry_at = now + kTryAgain;
    }
    failures_.insert_or_assign(change.route, std::move(failure));
    read_at_ = std::min(read_at_, now);  // the route may be there, also that of an earlier process
    return is_new;
}

void VipRouteKeeper::note_removed(const VipRoute& route) {
    const auto first = present_.lower_bound(VipRoute{route.address, route.port, 0});
    if (first == present_.end() || first->address != route.address || first->port != route.port) {
        unused_neighbours_.insert({route.address, route.port});
    }
}

// One round's number, after the routes. True: there are more.
bool VipRouteKeeper::remove_neighbours() {
    const auto end =
        std::next(unused_neighbours_.begin(),
                  static_cast<std::ptrdiff_t>(std::min(unused_neighbours_.size(), kPerRound.others)));
    const std::vector<drivers::VipNeighbour> some(unused_neighbours_.begin(), end);
    if (!some.empty()) {
        options_.remove_neighbours(some);
        unused_neighbours_.erase(unused_neighbours_.begin(), end);
    }
    return !unused_neighbours_.empty();
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
        const VipRoute lowest{vip.address, NicPortId{0}, 0};
        auto route = present_.find(VipRoute{vip.address, vip.port, vip.metric});
        const bool is_as_wanted = route != present_.end();
        if (!is_as_wanted) {
            route = present_.lower_bound(lowest);
        }
        if (route != present_.end() && route->address == vip.address) {
            view.port = route->port;
            view.metric = route->metric;
            view.is_present = true;
        }
        if (const auto failed = failures_.lower_bound(lowest);
            !is_as_wanted && failed != failures_.end() && failed->first.address == vip.address) {
            view.reason = failed->second.reason;
        }
        view.has_foreign_route = std::ranges::binary_search(conflicts_, vip.address);
        view.is_of_others = vip.is_of_others;
        view.is_vip = vip.is_vip;
    }
    return views;
}

}  // namespace penstock::gateway
