// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/source_ranges.hpp"

#include <algorithm>
#include <string_view>

#include "control/semantics/annotations.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {

bool SourceRanges::filters(IpFamily family, bool compat_kube_proxy) const noexcept {
    if (!restricted) {
        return false;
    }
    const bool lists_family =
        std::ranges::any_of(listed, [family](const Prefix& range) { return range.family() == family; });
    const bool stays_open = deny || (compat_kube_proxy && families.has(family));
    return lists_family || listed.empty() || !stays_open;
}

SourceRanges source_ranges_of(const kube::Service& service, ServiceType type, bool deny, Notices& notices) {
    std::vector<std::string_view> entries(service.load_balancer_source_ranges.begin(),
                                          service.load_balancer_source_ranges.end());
    std::string_view origin = "spec.loadBalancerSourceRanges";
    if (entries.empty()) {
        const auto annotation = annotations::read(annotations::spec_of(annotations::Setting::SourceRanges),
                                                  service.meta.annotations);
        if (!annotation) {
            return {};
        }
        entries = split(annotation->text, ',');
        origin = annotation->spelling->key;
    }
    if (type != ServiceType::LoadBalancer) {
        notices.warn(reason::kSourceRangesIgnored,
                     std::string(origin) +
                         " applies to LoadBalancer IPs only; this Service is not of type LoadBalancer");
        return {};
    }
    SourceRanges ranges{.restricted = true, .deny = deny, .listed = {}};
    for (const std::string_view entry : entries) {
        if (const auto range = Prefix::parse(trimmed(entry))) {
            ranges.listed.push_back(*range);
        } else {
            notices.warn(reason::kInvalidSourceRange,
                         std::string(origin) + ": " + quoted(entry) + " is not a CIDR and is skipped");
        }
    }
    if (ranges.listed.empty()) {
        notices.warn(reason::kInvalidSourceRange,
                     std::string(origin) + ": no entry is a CIDR, so every client is denied");
        ranges.deny = false;
    }
    std::ranges::sort(ranges.listed);
    const auto [first, last] = std::ranges::unique(ranges.listed);
    ranges.listed.erase(first, last);
    return ranges;
}

}  // namespace penstock::semantics
