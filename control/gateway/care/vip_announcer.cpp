// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/vip_announcer.hpp"

#include <algorithm>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

constexpr const char* kDrained = "the gateway is drained";

// The service ports with a VIP of the list (sorted), each with that VIP.
std::vector<std::pair<model::ServiceKey, IpAddr>> owners_of(const Compiled& compiled,
                                                            std::span<const IpAddr> vips) {
    std::vector<std::pair<model::ServiceKey, IpAddr>> owners;
    for (const auto& [key, programmed] : compiled.services) {
        for (const model::Frontend& frontend : programmed.desired->frontends) {
            const bool is_vip = frontend.cls == lb::FrontendClass::LoadBalancerIp ||
                                frontend.cls == lb::FrontendClass::ExternalIp;
            if (is_vip && std::ranges::binary_search(vips, frontend.address)) {
                owners.emplace_back(key, frontend.address);
            }
        }
    }
    return owners;
}

}  // namespace

VipAnnouncer::VipAnnouncer(VipAnnouncerOptions options, bool drained)
    : options_(std::move(options)), order_(options_.routes.has_value()) {
    if (options_.addresses) {
        addresses_.emplace(*options_.addresses);
    }
    if (options_.routes) {
        routes_.emplace(*options_.routes);
    }
    if (options_.responder) {
        responder_.emplace(*options_.responder);
    }
    if (drained) {
        order_.begin_withdrawn();
    }
}

void VipAnnouncer::set(std::shared_ptr<const Compiled> compiled) {
    compiled_ = std::move(compiled);
    if (addresses_) {
        addresses_->set(*compiled_->table);
    }
    if (routes_) {
        routes_->set(*compiled_->table);
    }
    reported_mirror_.reset();
}

std::optional<VipAnnouncer::Clock::time_point> VipAnnouncer::work(const Facts& facts, Clock::time_point now) {
    const DrainStep before = order_.step();
    facts.drained ? order_.begin(now) : order_.end();
    DrainOrder::Readings readings;
    if (compiled_ != nullptr && options_.vip_packets && routes_) {
        readings.vip_packets = options_.vip_packets(*compiled_);
    }
    if (facts.drained && options_.open_flows) {
        readings.open_flows = options_.open_flows();
    }
    readings.is_announced = (routes_ ? routes_->has_routes() : addresses_ && !facts.mirror->vips.empty()) ||
                            (responder_ && !responder_->present().empty());
    order_.work(now, readings);
    const bool has_more = announce(facts, now);
    update_notices();
    if (before != order_.step()) {
        log::get("control").info("drain: {}", to_string(order_.step()));
        reported_mirror_.reset();
    }
    update_report(facts.mirror);
    if (has_more) {
        return now;
    }
    std::optional<Clock::time_point> next;
    for (const auto& time : {addresses_ ? addresses_->next() : std::nullopt,
                             responder_ ? responder_->next() : std::nullopt, order_.depreferred_until()}) {
        if (time) {
            next = std::min(next.value_or(*time), *time);
        }
    }
    return next;
}

// Without a configuration nothing is announced, and routes of an earlier process are removed.
bool VipAnnouncer::announce(const Facts& facts, Clock::time_point now) {
    const bool is_withdrawn = order_.step() == DrainStep::Withdrawn || order_.step() == DrainStep::Done;
    const std::string withheld = !facts.withheld.empty() ? facts.withheld
                                 : is_withdrawn          ? std::string(kDrained)
                                                         : std::string();
    if (addresses_) {
        addresses_->work(*facts.mirror, withheld, now);
        if (responder_) {
            std::vector<route::LinkVip> others;
            for (const route::LocalAddress& vip : addresses_->refused()) {
                others.push_back({vip.address, vip.port});
            }
            responder_->want(std::move(others));
            responder_->work(*facts.mirror, now);
        }
    }
    if (!routes_) {
        return false;
    }
    const uint32_t metric = order_.step() == DrainStep::Depreferred ? kDrainMetric
                            : options_.stands_by                    ? kStandByMetric
                                                                    : kServeMetric;
    const VipRouteKeeper::Wish wish{metric, withheld, facts.shares, facts.returning};
    answer_on_links(facts, wish, now);
    return routes_->work(facts.mirror, facts.ports, wish, now);
}

// A link has no metric: of two gateways that answer, each host uses the last answer. So only a
// gateway that serves answers, and of a share only its holder.
void VipAnnouncer::answer_on_links(const Facts& facts, const VipRouteKeeper::Wish& wish,
                                   Clock::time_point now) {
    if (!responder_) {
        return;
    }
    LinkInputs inputs{.compiled = compiled_,
                      .mirror = facts.mirror,
                      .ports = {facts.ports.begin(), facts.ports.end()},
                      .wish = wish,
                      .held = facts.held,
                      .has_configuration = facts.has_configuration};
    if (inputs != planned_for_) {
        planned_for_ = std::move(inputs);
        const bool serves = wish.withheld.empty() && wish.metric == kServeMetric;
        std::vector<PlannedVip> planned;
        if (serves) {
            const std::vector<ServedVip> addresses = routes_->addresses(wish);
            planned = plan_link_vips({addresses, options_.routes->twins, facts.ports, *facts.mirror});
        }
        link_shares_ = serves && facts.has_configuration ? shares_on_links(facts.shares, planned)
                                                         : LinkShares{.shares = facts.shares};
        std::vector<route::LinkVip> wanted;
        for (const PlannedVip& vip : planned) {
            if (vip.port.is_set() && (facts.shares == nullptr || facts.held.has(vip.address))) {
                wanted.push_back({vip.address, vip.port, is_snat_of(facts.shares.get(), vip.address)});
            }
        }
        responder_->want(std::move(wanted));
    }
    responder_->work(*facts.mirror, now);
    report_link_shares();
}

void VipAnnouncer::report_link_shares() {
    if (link_shares_.shares == nullptr) {
        return;
    }
    link_shares_.answered = 0;
    for (const route::LinkVip& vip : responder_->maybe_answered()) {
        link_shares_.answered |= uint64_t{1} << link_shares_.shares->share_of(vip.address);
    }
    if (link_shares_ != reported_link_shares_) {
        reported_link_shares_ = link_shares_;
        options_.on_link_shares(link_shares_);
    }
}

VipPresenceMode VipAnnouncer::mode() const noexcept {
    if (routes_) {
        return responder_ ? VipPresenceMode::Arp : VipPresenceMode::Routes;
    }
    return addresses_ ? VipPresenceMode::Addresses : VipPresenceMode::Off;
}

void VipAnnouncer::withdraw(const drivers::MirroredState& mirror) {
    if (addresses_) {
        addresses_->withdraw(mirror);
    }
    if (routes_) {
        routes_->withdraw();
    }
    if (responder_) {
        responder_->withdraw();
    }
}

void VipAnnouncer::update_notices() {
    std::vector<IpAddr> vips;
    if (addresses_) {
        for (const route::LocalAddress& vip : addresses_->refused()) {
            vips.push_back(vip.address);
        }
        std::ranges::sort(vips);
    } else if (routes_) {
        vips = routes_->conflicts();
    }
    if (vips == noted_ && compiled_ == noted_in_) {
        return;
    }
    notices_.clear();
    if (!vips.empty() && compiled_ != nullptr) {
        for (const auto& [key, vip] : owners_of(*compiled_, vips)) {
            model::Notice notice{.reason = model::kVipRouteConflict,
                                 .message = "another program of the gateway has a route for " +
                                            vip.to_string() + ", which is left alone"};
            if (addresses_) {
                notice = {
                    .reason = model::kVipLimitReached,
                    .message = vip.to_string() +
                               " is not assigned to an interface, because each has at "
                               "most " +
                               std::to_string(kVipAddressesMax) +
                               " VIPs: workers answer ARP and ND for it, and routing daemons do not see "
                               "it; use --vip-presence arp"};
            }
            notices_.push_back({key, std::move(notice)});
        }
        std::ranges::sort(notices_);
    }
    noted_ = std::move(vips);
    noted_in_ = compiled_;
}

void VipAnnouncer::update_report(const std::shared_ptr<const drivers::MirroredState>& mirror) {
    const bool is_new = std::exchange(reported_mirror_, mirror) != mirror;
    const bool have_routes_changed = routes_ && routes_->take_changed();
    const bool have_answers_changed = responder_ && responder_->take_changed();
    if (!is_new && !have_routes_changed && !have_answers_changed) {
        return;
    }
    auto report = std::make_shared<VipReport>();
    report->drain = order_.step();
    report->depreferred_until = order_.depreferred_until();
    report->mode = mode();
    if (routes_) {
        report->vips = routes_->views();
    } else if (addresses_) {
        report->vips = addresses_->views(*mirror);
    }
    if (responder_) {
        responder_->mark(report->vips);
    }
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
}

std::shared_ptr<const VipReport> VipAnnouncer::report() const {
    const std::lock_guard lock(mutex_);
    return report_;
}

}  // namespace penstock::gateway
