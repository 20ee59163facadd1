#include "control/semantics/external_ips.hpp"

#include <algorithm>

#include "control/semantics/address_rules.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {

std::vector<IpAddr> external_ips_of(const kube::Service& service, Families families, const ExternalIpRights& rights, Notices& notices) {
    std::vector<IpAddr> served;
    for (const std::string& text : service.external_ips) {
        const auto address = IpAddr::parse(text);
        if (!address) {
            notices.warn(reason::kInvalidExternalIp, "spec.externalIPs: " + printable(address.error().what, 2 * kShownCharsMax));
            continue;
        }
        if (const std::string_view why = unfit_as_frontend(*address); !why.empty()) {
            notices.warn(reason::kInvalidExternalIp, "spec.externalIPs: " + address->to_string() + " is " + std::string(why));
            continue;
        }
        if (!families.has(address->family())) {
            notices.warn(reason::kFamilyMismatch, "external IP " + address->to_string() + " is not served: the Service has no " +
                                                      to_string(address->family()) + " in its ipFamilies");
            continue;
        }
        if (const auto why = rights.why_refused(*address)) {
            notices.warn(reason::kExternalIpNotAllowed, *why);
            continue;
        }
        if (std::ranges::find(served, *address) == served.end()) {
            served.push_back(*address);
        }
    }
    return served;
}

}  // namespace penstock::semantics
