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
    readings.is_announced = routes_ ? routes_->has_routes() : addresses_ && !facts.mirror->vips.empty();
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
    std::optional<Clock::time_point> next = addresses_ ? addresses_->next() : std::nullopt;
    if (const auto until = order_.depreferred_until()) {
        next = std::min(next.value_or(*until), *until);
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
    }
    if (!routes_) {
        return false;
    }
    const uint32_t metric = order_.step() == DrainStep::Depreferred ? kDrainMetric
                            : options_.stands_by                    ? kStandByMetric
                                                                    : kServeMetric;
    return routes_->work(facts.mirror, facts.ports, {metric, withheld}, now);
}

void VipAnnouncer::withdraw(const drivers::MirroredState& mirror) {
    if (addresses_) {
        addresses_->withdraw(mirror);
    }
    if (routes_) {
        routes_->withdraw();
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
                notice = {.reason = model::kVipLimitReached,
                          .message = vip.to_string() + " is not assigned: its interface has " +
                                     std::to_string(kVipAddressesMax) +
                                     " VIPs already; use --vip-presence routes"};
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
    const bool has_changed = routes_ && routes_->take_changed();
    if (!is_new && !has_changed) {
        return;
    }
    auto report = std::make_shared<VipReport>();
    report->drain = order_.step();
    report->depreferred_until = order_.depreferred_until();
    if (routes_) {
        report->mode = VipPresenceMode::Routes;
        report->vips = routes_->views();
    } else if (addresses_) {
        report->mode = VipPresenceMode::Addresses;
        report->vips = addresses_->views(*mirror);
    }
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
}

std::shared_ptr<const VipReport> VipAnnouncer::report() const {
    const std::lock_guard lock(mutex_);
    return report_;
}

}  // namespace penstock::gateway
