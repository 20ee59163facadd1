// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/vip_responder.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

// VIPs of one change that are logged individually. Above that, the number is logged.
constexpr size_t kLoggedLinkVips = 8;

bool has_link(std::span<const PortState> ports, NicPortId port) {
    const auto found = std::ranges::find(ports, port, &PortState::id);
    return found != ports.end() && found->is_up && !found->is_removed;
}

std::optional<uint8_t> longest_subnet(const IpAddr& vip, const std::vector<drivers::InterfaceAddress>& twin) {
    std::optional<uint8_t> longest;
    for (const auto& configured : twin) {
        const auto subnet = Prefix::make(configured.address, configured.prefix_length);
        if (subnet && subnet->contains(vip)) {
            longest = std::max(longest.value_or(0), subnet->length());
        }
    }
    return longest;
}

// The port whose link has the VIP; unset without one, with the reason.
PlannedVip place(const IpAddr& vip, const VipPlanInputs& inputs) {
    PlannedVip plan{.address = vip, .port = {}, .reason = "outside the subnets of all twins"};
    std::optional<uint8_t> longest;
    for (size_t i = 0; i < inputs.twins.size(); ++i) {
        const auto length = longest_subnet(vip, inputs.twins[i]);
        if (!length || (longest && *length < *longest) || (longest == length && plan.port.is_set())) {
            continue;
        }
        longest = length;
        const NicPortId port{static_cast<uint8_t>(i)};
        plan.port = has_link(inputs.ports, port) ? port : NicPortId();
        plan.reason = plan.port.is_set() ? "" : kLinkDown;
    }
    return plan;
}

route::LocalAddress whole(const route::LinkVip& vip) {
    return {vip.port, vip.address, vip.address.bits()};
}

void log_link_vips(const char* what, std::span<const route::LinkVip> vips) {
    if (vips.size() > kLoggedLinkVips) {
        log::get("control").info("{} for {} VIPs", what, vips.size());
        return;
    }
    for (const route::LinkVip& vip : vips) {
        log::get("control").info("{} for VIP {} on port {}", what, vip.address.to_string(), vip.port.value);
    }
}

}  // namespace

std::vector<PlannedVip> plan_link_vips(const VipPlanInputs& inputs) {
    std::vector<IpAddr> own;
    for (const route::LocalAddress& local : inputs.mirror.addresses) {
        own.push_back(local.address);
    }
    std::ranges::sort(own);
    std::vector<PlannedVip> planned;
    planned.reserve(inputs.vips.size());
    for (const ServedVip& vip : inputs.vips) {
        if (vip.shown != ServedVip::Shown::Yes) {
            planned.push_back({vip.address, {}, text_of(vip.shown)});
        } else if (std::ranges::binary_search(own, vip.address)) {
            planned.push_back({vip.address, {}, kVipOfHost});
        } else {
            planned.push_back(place(vip.address, inputs));
        }
    }
    return planned;
}

void VipResponder::want(std::vector<route::LinkVip> wanted) {
    std::ranges::sort(wanted);
    is_new_ = is_new_ || wanted != wanted_;
    wanted_ = std::move(wanted);
}

void VipResponder::work(const drivers::MirroredState& mirror, Clock::time_point now) {
    const bool is_new = std::exchange(is_new_, false);
    if (is_new) {
        passed_.push_back(wanted_.empty() ? nullptr : std::make_shared<const route::LinkVips>(wanted_));
        options_.answer_for(passed_.back());
    }
    if (auto answered = options_.answered(); is_new || answered != answered_) {
        answered_ = std::move(answered);
        follow(answered_, now);
    }
    if (!passed_.empty() && answered_ == passed_.back()) {
        passed_.clear();
    }
    announce(mirror, now);
}

void VipResponder::follow(const std::shared_ptr<const route::LinkVips>& answered, Clock::time_point now) {
    std::vector<route::LinkVip> present, appeared, gone;
    if (answered != nullptr) {
        std::ranges::set_intersection(wanted_, answered->all(), std::back_inserter(present));
    }
    std::ranges::set_difference(present, present_, std::back_inserter(appeared));
    std::ranges::set_difference(present_, present, std::back_inserter(gone));
    for (const route::LinkVip& vip : gone) {
        announcements_.remove(whole(vip));
    }
    for (const route::LinkVip& vip : appeared) {
        announcements_.add(whole(vip), now);
    }
    log_link_vips("workers answer no longer", gone);
    log_link_vips("workers answer ARP and ND", appeared);
    present_ = std::move(present);
    changed_ = changed_ || !appeared.empty() || !gone.empty();
}

std::vector<route::LinkVip> VipResponder::maybe_answered() const {
    std::vector<route::LinkVip> vips;
    const auto add = [&](const std::shared_ptr<const route::LinkVips>& list) {
        if (list != nullptr) {
            vips.insert(vips.end(), list->all().begin(), list->all().end());
        }
    };
    add(answered_);
    std::ranges::for_each(passed_, add);
    return vips;
}

void VipResponder::announce(const drivers::MirroredState& mirror, Clock::time_point now) {
    for (const route::LocalAddress& vip : announcements_.take_due(now)) {
        if (const auto port = std::ranges::find(mirror.ports, vip.port, &route::EgressPort::id);
            port != mirror.ports.end()) {
            options_.announce(vip, port->mac);
        }
    }
}

void VipResponder::withdraw() {
    wanted_.clear();
    present_.clear();
    announcements_.clear();
    passed_.clear();
    options_.answer_for(nullptr);
    changed_ = true;
}

void VipResponder::mark(std::vector<VipView>& views) const {
    auto next = present_.begin();
    for (VipView& view : views) {
        while (next != present_.end() && next->address < view.address) {
            ++next;
        }
        if (next != present_.end() && next->address == view.address) {
            view.is_answered = true;
            view.is_present = true;
            view.port = next->port;
        }
    }
}

}  // namespace penstock::gateway
