// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/request.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "control/annotations/value.hpp"
#include "control/ipam/address_number.hpp"
#include "control/semantics/text.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::ipam {
namespace {

using annotations::Setting;

constexpr std::string_view kNetworkAlias = "service.kubernetes.io/qcloud-loadbalancer-internal-subnetid";

std::optional<annotations::Value> value_of(const kube::Service& service, Setting setting) {
    return annotations::read(annotations::spec_of(setting), service.meta.annotations);
}

Refusal malformed_address(std::string_view field, std::string_view text) {
    return {RefusalReason::AddressOutsidePools,
            std::string(field) + ": " + semantics::quoted(text) +
                " is not a list of IP addresses with at most one of each family"};
}

void add_family(std::vector<IpFamily>& families, IpFamily family) {
    if (std::ranges::find(families, family) == families.end()) {
        families.push_back(family);
    }
}

// LB-009. The field and the annotation agree if the field's address is in the annotation's list.
void read_addresses(const kube::Service& service, Request& request) {
    const auto listed = value_of(service, Setting::LoadBalancerIps);
    if (listed && !listed->valid) {
        request.malformed = malformed_address(listed->spelling->key, listed->text);
        return;
    }
    if (listed) {
        for (const std::string_view item : split(listed->text, ',')) {
            if (const auto address = IpAddr::parse(item)) {
                request.addresses[index_of(address->family())] = *address;
            }
        }
    }
    if (service.load_balancer_ip.empty()) {
        return;
    }
    const auto field = IpAddr::parse(service.load_balancer_ip);
    if (!field) {
        request.malformed = malformed_address("spec.loadBalancerIP", service.load_balancer_ip);
        return;
    }
    auto& requested = request.addresses[index_of(field->family())];
    if (listed && requested != *field) {
        request.malformed = {RefusalReason::LoadBalancerIPConflict,
                             "spec.loadBalancerIP is " + field->to_string() + ", but " +
                                 std::string(listed->spelling->key) + " is " +
                                 semantics::quoted(listed->text) + "; remove one of them"};
        return;
    }
    requested = *field;
}

// DUAL-001. An API server sets ipFamilies; a manifest may lack it.
void read_families(const kube::Service& service, Request& request) {
    for (const std::string& family : service.ip_families) {
        if (family == "IPv4" || family == "IPv6") {
            add_family(request.families, family == "IPv4" ? IpFamily::V4 : IpFamily::V6);
        }
    }
    if (request.families.empty()) {
        for (const std::string& text : service.cluster_ips) {
            if (const auto address = IpAddr::parse(text)) {
                add_family(request.families, address->family());
            }
        }
    }
    if (request.families.empty()) {
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            if (request.addresses[index_of(family)]) {
                request.families.push_back(family);
            }
        }
    }
    if (request.families.empty()) {
        request.families.push_back(IpFamily::V4);
    }
    if (service.ip_family_policy == "SingleStack") {
        request.families.resize(1);
    }
    request.requires_all = request.families.size() == 1 || service.ip_family_policy == "RequireDualStack";
}

void read_scope(const kube::Service& service, Request& request) {
    if (const auto scope = value_of(service, Setting::Scope); scope && scope->valid) {
        request.internal = scope->word == "internal";
        if (scope->spelling->key == kNetworkAlias) {
            request.pool_alias = scope->text;
        }
    }
}

// A key is no secret, so it opens an address to the Service's own namespace only.
bool permits(const SharingTerms& terms, const std::string& namespace_name) {
    return terms.namespace_name == namespace_name ||
           std::ranges::any_of(terms.namespaces, [&](const std::string& permitted) {
               return permitted == "*" || permitted == namespace_name;
           });
}

void read_sharing(const kube::Service& service, SharingTerms& terms) {
    if (const auto key = value_of(service, Setting::AllowSharedIp); key && key->valid) {
        terms.key = key->text;
    }
    terms.namespace_name = service.meta.namespace_name;
    if (const auto permitted = value_of(service, Setting::SharedIpNamespaces);
        permitted && permitted->valid) {
        for (const std::string_view item : split(permitted->text, ',')) {
            terms.namespaces.emplace_back(item);
        }
    }
    for (const kube::ServicePort& port : service.ports) {
        terms.ports.emplace_back(port.protocol, port.port);
    }
    std::ranges::sort(terms.ports);
    terms.cluster_policy = service.external_traffic_policy == "Cluster";
    terms.selector = service.selector;
}

}  // namespace

bool Request::has_family(IpFamily family) const noexcept {
    return std::ranges::find(families, family) != families.end();
}

std::optional<std::string> why_not_shared(const SharingTerms& own, const SharingTerms& other) {
    if (own.key.empty() || own.key != other.key) {
        return "the sharing keys differ";
    }
    for (const auto& [asked, asking] : {std::pair(&other, &own), std::pair(&own, &other)}) {
        if (!permits(*asked, asking->namespace_name)) {
            return std::string(annotations::spec_of(Setting::SharedIpNamespaces).spellings.front().key) +
                   " of the Service in namespace " + asked->namespace_name + " does not permit namespace " +
                   asking->namespace_name;
        }
    }
    if (!(own.cluster_policy && other.cluster_policy) && own.selector != other.selector) {
        return "the selectors differ and externalTrafficPolicy is not Cluster for both";
    }
    std::vector<std::pair<std::string, int64_t>> both;
    std::ranges::set_intersection(own.ports, other.ports, std::back_inserter(both));
    if (!both.empty()) {
        return "both use port " + std::to_string(both.front().second) + "/" +
               semantics::printable(both.front().first);
    }
    return std::nullopt;
}

Request request_of(const kube::Service& service) {
    Request request{
        .age = {.created = semantics::CreationTime::parse(service.meta.creation_timestamp),
                .uid = service.meta.uid,
                .service = {.namespace_name = service.meta.namespace_name, .name = service.meta.name}},
        .labels = service.meta.labels};
    read_addresses(service, request);
    read_families(service, request);
    read_scope(service, request);
    if (const auto pool = value_of(service, Setting::AddressPool)) {
        if (pool->valid) {
            request.pool = pool->text;
        } else if (!request.malformed) {
            request.malformed = {RefusalReason::NoPool, std::string(pool->spelling->key) + ": " +
                                                            semantics::quoted(pool->text) +
                                                            " is not the name of a pool"};
        }
    }
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        if (const auto& address = request.addresses[index_of(family)];
            address && !request.has_family(family) && !request.malformed) {
            request.malformed = {
                RefusalReason::FamilyMissing,
                address->to_string() + " is requested, but the Service has no " + to_string(family)};
        }
    }
    read_sharing(service, request.sharing);
    return request;
}

ShownStatus shown_status_of(const kube::Service& service, const Request& request) {
    ShownStatus shown{.is_ours = kube::has_marker(service)};
    std::array<std::optional<IpAddr>, 2> first;
    for (const kube::LoadBalancerIngress& ingress : service.ingress) {
        const auto address = IpAddr::parse(ingress.ip);
        if (!address) {
            shown.has_unusable = true;
            continue;
        }
        auto& known = first[index_of(address->family())];
        known = known.value_or(*address);
    }
    for (const IpFamily family : request.families) {
        if (const auto& address = first[index_of(family)]) {
            shown.addresses.push_back(*address);
        }
    }
    return shown;
}

}  // namespace penstock::ipam
