// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/load_balancer.hpp"

#include <algorithm>

#include "control/semantics/address_rules.hpp"
#include "control/semantics/service_port.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

// Errors from Penstock are prefixed with its domain, as the API requires (PortStatus.error).
constexpr std::string_view kOwnErrorPrefix = "penstock.io/";

// LB-004. Proxy means that the owning load balancer wants the traffic to pass through itself. On a Service
// that Penstock does not own, such an address is not served.
bool opens_frontend(const kube::LoadBalancerIngress& ingress, bool owned, Notices& notices) {
    if (ingress.ip_mode.empty() || ingress.ip_mode == "VIP") {
        return true;
    }
    if (ingress.ip_mode != "Proxy") {
        notices.warn(reason::kUnknownValue,
                     "status.loadBalancer.ingress: ipMode " + quoted(ingress.ip_mode) + " is not known; " +
                         (owned ? "the IP is served" : "the entry is ignored, like Proxy"));
    }
    return owned;
}

void add_closed_ports(LoadBalancerAddress& target, const kube::LoadBalancerIngress& ingress, bool owned,
                      Notices& notices) {
    for (const auto& status : ingress.ports) {
        const bool ours = owned || status.error.starts_with(kOwnErrorPrefix);
        const auto protocol = parse_protocol(status.protocol);
        if (status.error.empty() || !ours || !is_l4_port(status.port) || !protocol) {
            continue;
        }
        target.closed.emplace_back(static_cast<L4Port>(status.port), *protocol);
        notices.mention(reason::kLoadBalancerPortsError,
                        target.address.to_string() + " port " + std::to_string(status.port) + "/" +
                            status.protocol + " is not opened: its status is " + quoted(status.error));
    }
}

}  // namespace

bool is_foreign(const kube::Service& service, const Policy& policy) noexcept {
    return service.type == "LoadBalancer" && !service.load_balancer_class.empty() &&
           service.load_balancer_class != policy.lb_class;
}

bool is_owned(const kube::Service& service, const Policy& policy) noexcept {
    return service.load_balancer_class.empty() ? policy.default_lb
                                               : service.load_balancer_class == policy.lb_class;
}

bool in_vip_scope(const kube::Service& service, model::GatewayMode mode, const Policy& policy) noexcept {
    const bool all = policy.lb_vip_scope == Policy::VipScope::All ||
                     (policy.lb_vip_scope == Policy::VipScope::Default && mode == model::GatewayMode::Node);
    return all || is_owned(service, policy);
}

std::vector<LoadBalancerAddress> load_balancer_addresses_of(const kube::Service& service, Families families,
                                                            const Policy& policy, Notices& notices) {
    std::vector<LoadBalancerAddress> addresses;
    const bool owned = is_owned(service, policy);
    for (const kube::LoadBalancerIngress& ingress : service.ingress) {
        // An entry with only a host name opens nothing (LB-005).
        if (ingress.ip.empty() || !opens_frontend(ingress, owned, notices)) {
            continue;
        }
        const auto address = IpAddr::parse(ingress.ip);
        if (!address) {
            notices.warn(
                reason::kInvalidLoadBalancerIp,
                "status.loadBalancer.ingress: " + printable(address.error().what, 2 * kShownCharsMax));
            continue;
        }
        if (const std::string_view why = unfit_as_frontend(*address); !why.empty()) {
            notices.warn(reason::kInvalidLoadBalancerIp,
                         "status.loadBalancer.ingress: " + address->to_string() + " is " + std::string(why) +
                             " and is skipped");
            continue;
        }
        if (!families.has(address->family())) {
            notices.warn(reason::kFamilyMismatch, "LoadBalancer IP " + address->to_string() +
                                                      " is not served: the Service has no " +
                                                      to_string(address->family()) + " in its ipFamilies");
            continue;
        }
        auto known = std::ranges::find(addresses, *address, &LoadBalancerAddress::address);
        if (known == addresses.end()) {
            known = addresses.insert(known, {.address = *address, .closed = {}});
        }
        add_closed_ports(*known, ingress, owned, notices);
    }
    return addresses;
}

}  // namespace penstock::semantics
