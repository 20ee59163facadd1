// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/external_ips.hpp"

#include <string>
#include <unordered_set>

#include "control/semantics/address_rules.hpp"
#include "control/semantics/annotations.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

std::optional<annotations::Value> annotation_of(const kube::Service& service) {
    return annotations::read(annotations::spec_of(annotations::Setting::ExternalIps),
                             service.meta.annotations);
}

}  // namespace

std::vector<NamedExternalIp> named_external_ips(const kube::Service& service, bool with_annotation) {
    std::vector<NamedExternalIp> named;
    for (const std::string& text : service.external_ips) {
        named.push_back({.text = text, .origin = "spec.externalIPs"});
    }
    if (const auto annotation = annotation_of(service); annotation && with_annotation) {
        for (const std::string_view text : split(annotation->text, ',')) {
            named.push_back({.text = text, .origin = annotation->spelling->key});
        }
    }
    return named;
}

std::vector<IpAddr> external_ips_of(const kube::ObjectName& name, const kube::Service& service,
                                    Families families, const Policy& policy, const ExternalIpRights& rights,
                                    Notices& notices) {
    std::vector<IpAddr> served;
    std::unordered_set<IpAddr> seen;
    if (!policy.external_ips_annotation && annotation_of(service)) {
        notices.warn(reason::kUnsupportedAnnotation,
                     "penstock.io/external-ips is ignored: it requires --external-ips-annotation");
    }
    for (const auto& [text, origin] : named_external_ips(service, policy.external_ips_annotation)) {
        const auto address = IpAddr::parse(text);
        if (!address) {
            notices.warn(reason::kInvalidExternalIp,
                         std::string(origin) + ": " + printable(address.error().what, 2 * kShownCharsMax));
            continue;
        }
        if (const std::string_view why = unfit_as_frontend(*address); !why.empty()) {
            notices.warn(reason::kInvalidExternalIp,
                         std::string(origin) + ": " + address->to_string() + " is " + std::string(why));
            continue;
        }
        if (!seen.insert(*address).second) {
            continue;
        }
        if (!families.has(address->family())) {
            notices.warn(reason::kFamilyMismatch, "external IP " + address->to_string() +
                                                      " is not served: the Service has no " +
                                                      to_string(address->family()) + " in its ipFamilies");
            continue;
        }
        if (const auto why = rights.why_refused(*address, name.namespace_name, service.meta.labels)) {
            notices.warn(reason::kExternalIpNotAllowed, *why);
            continue;
        }
        served.push_back(*address);
    }
    return served;
}

}  // namespace penstock::semantics
