// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/port_faults.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

namespace penstock::gateway {
namespace {

class Finder {
 public:
    explicit Finder(const PortNeeds& needs) : needs_(needs) {}

    void need_endpoint(const IpAddr& address) {
        const auto now = egress(needs_.routes, address);
        if (now && is_up(*now)) {
            return;
        }
        if (const auto port = now ? now : usual(address); port && !is_up(*port)) {
            ++lost_[port->value].endpoints;
        }
    }
    void need_vip(const IpAddr& address) {
        if (const auto port = twin_around(address, needs_.twins)) {
            if (!is_up(*port)) {
                ++lost_[port->value].frontends;
            }
        } else {
            ++routed_frontends_;
        }
    }
    void need_any(std::span<const IpAddr> node_port_addresses) {
        std::vector<NicPortId> ports;
        for (const IpAddr& address : node_port_addresses) {
            if (const auto port = twin_around(address, needs_.twins)) {
                ports.push_back(*port);
            }
        }
        if (std::ranges::none_of(ports, [this](NicPortId port) { return is_up(port); })) {
            for (const NicPortId port : ports) {
                ++lost_[port.value].frontends;
            }
        }
    }
    std::vector<std::string> finish() {
        if (routed_frontends_ > 0 && !has_default_route_up(needs_.routes)) {
            const auto blame = [&](const route::RouteTable& table) {
                for (const route::Route& route : table.routes()) {
                    if (is_default(route) && !is_up(route.egress)) {
                        lost_[route.egress.value].frontends += routed_frontends_;
                        return true;
                    }
                }
                return false;
            };
            if (!blame(needs_.routes) && needs_.routes_before != nullptr) {
                blame(*needs_.routes_before);
            }
        }
        std::vector<std::string> out;
        for (const PortState& port : needs_.ports) {
            if (const auto lost = lost_.find(port.id.value); lost != lost_.end()) {
                out.push_back("port " + port.twin + (port.is_removed ? " is removed" : " is down") +
                              ", and with it the way to " + text_of(lost->second));
            }
        }
        return out;
    }

 private:
    struct Lost {
        size_t endpoints = 0;
        size_t frontends = 0;
    };

    static std::string counted(size_t n, const char* what) {
        return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
    }
    static std::string text_of(const Lost& lost) {
        const std::string frontends = lost.frontends == 0 ? "" : counted(lost.frontends, "frontend");
        const std::string endpoints = lost.endpoints == 0 ? "" : counted(lost.endpoints, "endpoint");
        return frontends + (frontends.empty() || endpoints.empty() ? "" : " and ") + endpoints;
    }
    static bool is_default(const route::Route& route) {
        return route.destination.length() == 0 && route.egress.is_set();
    }

    [[nodiscard]] bool is_up(NicPortId id) const {
        const auto port = std::ranges::find(needs_.ports, id, &PortState::id);
        return port != needs_.ports.end() && port->is_up && !port->is_removed;
    }
    static std::optional<NicPortId> egress(const route::RouteTable& table, const IpAddr& address) {
        const route::Hop* hop = table.hop(address);
        return hop != nullptr && hop->egress.is_set() ? std::optional(hop->egress) : std::nullopt;
    }
    [[nodiscard]] std::optional<NicPortId> usual(const IpAddr& address) const {
        if (needs_.routes_before != nullptr) {
            if (const auto port = egress(*needs_.routes_before, address)) {
                return port;
            }
        }
        return twin_around(address, needs_.twins);
    }
    [[nodiscard]] bool has_default_route_up(const route::RouteTable& table) const {
        return std::ranges::any_of(table.routes(), [this](const route::Route& route) {
            return is_default(route) && is_up(route.egress);
        });
    }

    const PortNeeds& needs_;
    std::map<uint8_t, Lost> lost_;
    size_t routed_frontends_ = 0;
};

}  // namespace

std::vector<std::string> port_faults(const PortNeeds& needs) {
    if (std::ranges::all_of(needs.ports,
                            [](const PortState& port) { return port.is_up && !port.is_removed; })) {
        return {};
    }
    Finder finder(needs);
    std::unordered_set<IpAddr> vips;
    bool has_node_ports = false;
    needs.compiled.table->for_each_row([&](const lb::FrontendRow& row) {
        if (row.cls == lb::FrontendClass::LoadBalancerIp || row.cls == lb::FrontendClass::ExternalIp) {
            vips.insert(row.address);
        }
        has_node_ports = has_node_ports || row.cls == lb::FrontendClass::NodePort;
    });
    for (const IpAddr& address : vips) {
        finder.need_vip(address);
    }
    if (has_node_ports) {
        finder.need_any(needs.compiled.node_port_addresses);
    }
    std::unordered_set<IpAddr> endpoints;
    for (const auto& [key, programmed] : needs.compiled.services) {
        for (const lb::BackendSet& set : programmed.service->sets) {
            for (const lb::Backend& backend : set.usable) {
                endpoints.insert(backend.address);
            }
        }
    }
    for (const IpAddr& address : endpoints) {
        finder.need_endpoint(address);
    }
    return finder.finish();
}

}  // namespace penstock::gateway
