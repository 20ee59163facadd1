// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/vip_presence.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

struct Usability {
    bool has_endpoint = false;  // any frontend
    bool is_elsewhere = false;  // some frontend's endpoints are all on other nodes
};

std::string vip_text(const route::LocalAddress& vip) {
    return vip.address.to_string() + "/" + std::to_string(vip.prefix_length);
}

}  // namespace

std::optional<NicPortId> twin_around(const IpAddr& vip, const TwinSubnets& twins) {
    std::optional<NicPortId> port;
    uint8_t longest = 0;
    for (size_t i = 0; i < twins.size(); ++i) {
        for (const auto& configured : twins[i]) {
            const auto subnet = Prefix::make(configured.address, configured.prefix_length);
            if (subnet && subnet->contains(vip) && (!port || subnet->length() > longest)) {
                port = NicPortId{static_cast<uint8_t>(i)};
                longest = subnet->length();
            }
        }
    }
    return port;
}

const char* text_of(ServedVip::Shown shown) noexcept {
    switch (shown) {
        case ServedVip::Shown::Yes:
            return "";
        case ServedVip::Shown::Elsewhere:
            return "all endpoints are on other nodes";
        case ServedVip::Shown::Empty:
            return "no endpoint is usable";
    }
    return "";
}

std::vector<ServedVip> served_vips(const lb::ServiceTable& table, bool withdraw_empty) {
    std::map<IpAddr, Usability> vips;
    table.for_each_row([&](const lb::FrontendRow& row) {
        if (row.cls != lb::FrontendClass::LoadBalancerIp && row.cls != lb::FrontendClass::ExternalIp) {
            return;
        }
        Usability& vip = vips[row.address];
        const lb::BackendSet& set = row.backends();
        vip.has_endpoint = vip.has_endpoint || !set.usable.empty();
        vip.is_elsewhere =
            vip.is_elsewhere || (set.usable.empty() && set.when_empty == lb::EmptyAction::DropNoLocal);
    });
    std::vector<ServedVip> served;
    served.reserve(vips.size());
    for (const auto& [address, vip] : vips) {
        const auto shown = vip.has_endpoint   ? ServedVip::Shown::Yes
                           : vip.is_elsewhere ? ServedVip::Shown::Elsewhere
                           : withdraw_empty   ? ServedVip::Shown::Empty
                                              : ServedVip::Shown::Yes;
        served.push_back({address, shown});
    }
    return served;
}

std::vector<IpAddr> vips_to_show(const lb::ServiceTable& table, bool withdraw_empty) {
    std::vector<IpAddr> shown;
    for (const ServedVip& vip : served_vips(table, withdraw_empty)) {
        if (vip.shown == ServedVip::Shown::Yes) {
            shown.push_back(vip.address);
        }
    }
    return shown;
}

std::vector<route::LocalAddress> place_vips(std::span<const IpAddr> vips, const TwinSubnets& twins,
                                            std::span<const route::LocalAddress> own) {
    std::vector<route::LocalAddress> placed;
    for (const IpAddr& vip : vips) {
        const auto port = twin_around(vip, twins);
        if (port && std::ranges::find(own, vip, &route::LocalAddress::address) == own.end()) {
            placed.push_back({*port, vip, static_cast<uint8_t>(vip.bits())});
        }
    }
    std::ranges::sort(placed, {},
                      [](const route::LocalAddress& vip) { return std::tuple(vip.port, vip.address); });
    return placed;
}

std::vector<route::LocalAddress> limit_vips(std::vector<route::LocalAddress>& placed,
                                            std::span<const route::LocalAddress> present, size_t limit) {
    const auto order = [](const route::LocalAddress& vip) { return std::tuple(vip.port, vip.address); };
    std::vector<route::LocalAddress> kept, refused;
    for (auto first = placed.begin(); first != placed.end();) {
        const auto end = std::find_if(
            first, placed.end(), [&](const route::LocalAddress& vip) { return vip.port != first->port; });
        // Those that are present first, each group in its order.
        std::stable_partition(first, end, [&](const route::LocalAddress& vip) {
            return std::ranges::binary_search(present, order(vip), {}, order);
        });
        const auto last =
            static_cast<size_t>(end - first) > limit ? first + static_cast<std::ptrdiff_t>(limit) : end;
        kept.insert(kept.end(), first, last);
        refused.insert(refused.end(), last, end);
        first = end;
    }
    std::ranges::sort(kept, {}, order);
    std::ranges::sort(refused, {}, order);
    placed = std::move(kept);
    return refused;
}

void VipPresence::work(const drivers::MirroredState& mirror, const std::string& withheld,
                       Clock::time_point now) {
    withheld_ = withheld;
    std::vector<route::LocalAddress> wanted;
    if (withheld.empty()) {
        std::vector<IpAddr> shown;
        for (const ServedVip& vip : served_) {
            if (vip.shown == ServedVip::Shown::Yes) {
                shown.push_back(vip.address);
            }
        }
        wanted = place_vips(shown, options_.twins, mirror.addresses);
    }
    if (!is_supported_) {
        refused_ = std::move(wanted);
        return;
    }
    refused_ = limit_vips(wanted, mirror.vips);
    std::vector<route::LocalAddress> missing, left_over;
    std::ranges::set_difference(wanted, mirror.vips, std::back_inserter(missing), {}, order_of, order_of);
    std::ranges::set_difference(mirror.vips, wanted, std::back_inserter(left_over), {}, order_of, order_of);
    std::erase_if(retry_at_, [&](const auto& failed) {
        const auto is_it = [&](const route::LocalAddress& vip) { return order_of(vip) == failed.first; };
        return std::ranges::none_of(missing, is_it) && std::ranges::none_of(left_over, is_it);
    });
    const auto may_try = [&](const route::LocalAddress& vip) {
        const auto failed = retry_at_.find(order_of(vip));
        return failed == retry_at_.end() || failed->second <= now;
    };
    for (const auto& vip : left_over) {
        if (may_try(vip)) {
            remove(vip, now);
        }
    }
    for (const auto& vip : missing) {
        if (may_try(vip) && is_supported_) {
            add(vip, now);
        }
    }
    announce(mirror, now);
}

void VipPresence::announce(const drivers::MirroredState& mirror, Clock::time_point now) {
    for (const route::LocalAddress& vip : announcements_.take_due(now)) {
        if (const auto port = std::ranges::find(mirror.ports, vip.port, &route::EgressPort::id);
            port != mirror.ports.end()) {
            options_.announce(vip, port->mac);
        }
    }
}

void VipPresence::withdraw(const drivers::MirroredState& mirror) {
    announcements_.clear();
    for (const auto& vip : mirror.vips) {
        static_cast<void>(options_.remove(vip));
    }
}

std::vector<VipView> VipPresence::views(const drivers::MirroredState& mirror) const {
    std::map<IpAddr, NicPortId> present;
    for (const route::LocalAddress& vip : mirror.vips) {
        present.emplace(vip.address, vip.port);
    }
    std::set<IpAddr> refused;
    for (const route::LocalAddress& vip : refused_) {
        refused.insert(vip.address);
    }
    std::vector<VipView> views;
    views.reserve(served_.size());
    for (const ServedVip& vip : served_) {
        VipView& view = views.emplace_back(VipView{.address = vip.address, .reason = text_of(vip.shown)});
        if (const auto found = present.find(vip.address); found != present.end()) {
            view.is_present = true;
            view.port = found->second;
        }
        if (!view.reason.empty()) {
            continue;
        }
        if (!is_supported_) {
            view.reason = "this kernel does not support it (Linux 5.18)";
        } else if (!withheld_.empty()) {
            view.reason = withheld_;
        } else if (refused.contains(vip.address)) {
            view.reason = "its twin has " + std::to_string(kVipAddressesMax) + " VIPs already";
        } else if (std::ranges::find(mirror.addresses, vip.address, &route::LocalAddress::address) !=
                   mirror.addresses.end()) {
            view.reason = kVipOfHost;
        } else if (!twin_around(vip.address, options_.twins)) {
            view.reason = "outside the subnets of all twins";
        } else if (!view.is_present) {
            view.reason = "the address is being added";
        }
    }
    return views;
}

// The mirror may not reflect the last round yet: a VIP that is present by then is neither a failure nor new.
void VipPresence::add(const route::LocalAddress& vip, Clock::time_point now) {
    const auto added = options_.add(vip);
    if (!added && added.error().code == Errc::Unsupported) {
        is_supported_ = false;
        announcements_.clear();
        log::get("control").warn("workers answer for all VIPs, which are not addresses of twins: {}",
                                 added.error().what);
        return;
    }
    if (!added) {
        return say_failed(vip, added.error(), now);
    }
    retry_at_.erase(order_of(vip));
    if (!*added) {
        return;
    }
    log::get("control").info("VIP {} is present", vip_text(vip));
    announcements_.remove(vip);  // it was removed by hand
    announcements_.add(vip, now);
}

void VipPresence::remove(const route::LocalAddress& vip, Clock::time_point now) {
    if (const auto removed = options_.remove(vip); !removed) {
        return say_failed(vip, removed.error(), now);
    }
    retry_at_.erase(order_of(vip));
    announcements_.remove(vip);
    log::get("control").info("VIP {} is withdrawn", vip_text(vip));
}

void VipPresence::say_failed(const route::LocalAddress& vip, const Error& error, Clock::time_point now) {
    retry_at_[order_of(vip)] = now + kRetry;
    log::get("control").warn("VIP presence: {}: {}; next attempt in {} s", vip_text(vip), error.what,
                             kRetry.count());
}

}  // namespace penstock::gateway
