// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/standing.hpp"

#include <algorithm>

#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

constexpr const char* kProxyNameLabel = "service.kubernetes.io/service-proxy-name";
constexpr const char* kHeadlessLabel = "service.kubernetes.io/headless";
constexpr std::string_view kNoClusterIp = "None";

// The API server keeps clusterIP and clusterIPs[0] equal; a manifest may contain only one of them.
std::string_view first_cluster_ip(const kube::Service& service) {
    if (service.cluster_ip.empty() && !service.cluster_ips.empty()) {
        return service.cluster_ips.front();
    }
    return service.cluster_ip;
}

bool is_ignored(const kube::Service& service, const Policy& policy) {
    const auto& labels = service.meta.labels;
    if (labels.contains(kHeadlessLabel)) {
        return true;
    }
    const auto proxy_name = labels.find(kProxyNameLabel);
    // An empty value also names another proxy. If own_proxy_name is not configured, every value does.
    return proxy_name != labels.end() &&
           (policy.own_proxy_name.empty() || proxy_name->second != policy.own_proxy_name);
}

}  // namespace

ServiceType type_of(const kube::Service& service, Notices& notices) {
    if (service.type == "NodePort") {
        return ServiceType::NodePort;
    }
    if (service.type == "LoadBalancer") {
        return ServiceType::LoadBalancer;
    }
    if (service.type == "ExternalName") {
        return ServiceType::ExternalName;
    }
    if (service.type != "ClusterIP") {
        notices.warn(reason::kUnknownValue, "spec.type " + quoted(service.type) +
                                                " is not known; the Service is treated as ClusterIP");
    }
    return ServiceType::ClusterIp;
}

Standing standing_of(const kube::ObjectName& name, const kube::Service& service, const Policy& policy) {
    if (is_ignored(service, policy)) {
        return Standing::Ignored;
    }
    if (!is_dns_label(name.namespace_name) || !is_dns_name(name.name)) {
        return Standing::BadName;
    }
    if (service.type == "ExternalName") {
        return Standing::ExternalName;
    }
    const std::string_view cluster_ip = first_cluster_ip(service);
    if (cluster_ip == kNoClusterIp) {
        return Standing::Headless;
    }
    if (cluster_ip.empty()) {
        return service.awaits_cluster_ip ? Standing::AwaitsClusterIp : Standing::Served;
    }
    return IpAddr::parse(cluster_ip) ? Standing::Served : Standing::InvalidClusterIp;
}

std::string_view explanation(Standing standing) noexcept {
    switch (standing) {
        case Standing::Served:
        case Standing::Ignored:
            return "";
        case Standing::BadName:
            return "namespace or name is not a DNS name; the Service gets no frontends";
        case Standing::ExternalName:
            return "a Service of type ExternalName gets no frontends, regardless of its other fields";
        case Standing::Headless:
            return "a headless Service (clusterIP None) gets no frontends, not even for externalIPs or "
                   "nodePorts";
        case Standing::AwaitsClusterIp:
            return "clusterIP is still empty; the Service gets its frontends when one is allocated";
        case Standing::InvalidClusterIp:
            return "clusterIP is neither an IP address nor None; the Service gets no frontends";
    }
    return "";
}

std::vector<IpAddr> cluster_ips_of(const kube::Service& service) {
    std::vector<IpAddr> allocated;
    if (service.type == "ExternalName") {
        return allocated;
    }
    const auto add = [&](std::string_view text) {
        // "None" and "" do not parse as addresses.
        if (const auto address = IpAddr::parse(text);
            address && std::ranges::find(allocated, *address) == allocated.end()) {
            allocated.push_back(*address);
        }
    };
    add(service.cluster_ip);
    std::ranges::for_each(service.cluster_ips, add);
    return allocated;
}

Families families_of(const kube::Service& service, Notices& notices) {
    Families families;
    for (const std::string& family : service.ip_families) {
        if (family == "IPv4") {
            families.v4 = true;
        } else if (family == "IPv6") {
            families.v6 = true;
        } else {
            notices.warn(reason::kUnknownValue,
                         "spec.ipFamilies: " + quoted(family) + " is neither IPv4 nor IPv6 and is ignored");
        }
    }
    if (!families.none()) {
        return families;
    }
    for (const IpAddr& address : cluster_ips_of(service)) {
        families.add(address.family());
    }
    if (!families.none()) {
        return families;
    }
    const auto add = [&](std::string_view text) {
        if (const auto address = IpAddr::parse(text)) {
            families.add(address->family());
        }
    };
    std::ranges::for_each(service.external_ips, add);
    for (const kube::LoadBalancerIngress& ingress : service.ingress) {
        add(ingress.ip);
    }
    if (families.none()) {
        families.v4 = true;
    }
    return families;
}

}  // namespace penstock::semantics
