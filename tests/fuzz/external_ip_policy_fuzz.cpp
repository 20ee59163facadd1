// SPDX-License-Identifier: Apache-2.0
// Any text as a file of external IP rules. Reading terminates. It returns either a well-formed policy or
// errors, never both, and never grants an address outside the ranges in the text.
#include <string>
#include <string_view>

#include "control/semantics/rights.hpp"
#include "control/semantics/text.hpp"
#include "control/sync/external_ip_policy.hpp"
#include "dataplane/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto policy = sync::parse_external_ip_policy(text);
    if (!policy) {
        PENSTOCK_CHECK(policy.error().what.find("line ") != std::string::npos ||
                       size > sync::kPolicyBytesMax);
        PENSTOCK_CHECK(policy.error().what.size() < 16'384);
        return 0;
    }
    bool grants_v4 = false;
    for (const semantics::ExternalIpRule& rule : *policy) {
        PENSTOCK_CHECK(!rule.cidrs.empty() && (rule.all_namespaces || !rule.namespaces.empty()));
        for (const std::string& name : rule.namespaces) {
            PENSTOCK_CHECK(semantics::is_dns_label(name));
        }
        for (const Prefix& cidr : rule.cidrs) {
            grants_v4 |= cidr.family() == IpFamily::V4;
        }
    }
    const semantics::ExternalIpRules rules({.external_ip_rules = *policy});
    PENSTOCK_CHECK(grants_v4 || !rules.allow(IpAddr::v4(203, 0, 113, 7), "default", {}));
    return 0;
}
