// SPDX-License-Identifier: Apache-2.0
// Any text as a plan of shares. Reading terminates. It returns either a plan within the limits, in which each
// share has a primary of the file and another heir if there are two gateways, or errors of a limited length.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "control/client/target.hpp"
#include "control/shares/plan_text.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/base/limits.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto plan = shares::parse_plan(text);
    if (!plan) {
        const std::string& what = plan.error().what;
        PENSTOCK_CHECK(!what.empty() && what.size() < 16'384);
        PENSTOCK_CHECK(std::ranges::all_of(what, [](char c) { return c >= ' ' && c <= '~'; }));
        return 0;
    }
    PENSTOCK_CHECK(plan->version > 0);
    PENSTOCK_CHECK(!plan->gateways.empty() && plan->gateways.size() <= shares::kGatewaysMax);
    PENSTOCK_CHECK(!plan->shares.empty() && plan->shares.size() <= shares::kSharesMax);
    for (const shares::Gateway& gateway : plan->gateways) {
        const bool is_target = client::parse_target(gateway.address).has_value();
        PENSTOCK_CHECK(gateway.address.empty() ||
                       (is_target && gateway.address.size() <= shares::kGatewayAddressBytesMax &&
                        std::ranges::count(plan->gateways, gateway.address, &shares::Gateway::address) == 1));
    }
    const shares::ShareMap map = plan->map();
    std::set<IpAddr> links;
    for (const shares::Gateway& gateway : plan->gateways) {
        PENSTOCK_CHECK(!gateway.link || links.insert(*gateway.link).second);
        PENSTOCK_CHECK(gateway.link || !plan->forwards_strays);
    }
    PENSTOCK_CHECK(plan->spread.empty() || (plan->forwards_strays && plan->spread_key != 0));
    for (const Prefix& vips : plan->spread) {
        PENSTOCK_CHECK(map.is_spread(vips.address()));
        PENSTOCK_CHECK(map.share_of(vips.address(), IpAddr()) < plan->shares.size());
    }
    std::set<IpAddr> snat;
    for (size_t number = 0; number < plan->shares.size(); ++number) {
        const shares::Share& share = plan->shares[number];
        PENSTOCK_CHECK(plan->gateway(share.primary) != nullptr);
        PENSTOCK_CHECK(share.heir.empty() == (plan->gateways.size() == 1));
        PENSTOCK_CHECK(share.heir != share.primary);
        PENSTOCK_CHECK(share.heir.empty() || plan->gateway(share.heir) != nullptr);
        for (const IpAddr& address : share.snat) {
            PENSTOCK_CHECK(snat.insert(address).second && snat.size() <= limits::kSnatAddressesMax);
            PENSTOCK_CHECK(!address.is_unspecified() && !address.is_multicast());
            PENSTOCK_CHECK(map.share_of(address) == number);
        }
        for (const Prefix& vips : share.vips) {
            const uint8_t owner = map.share_of(vips.address());
            PENSTOCK_CHECK(std::ranges::any_of(plan->shares[owner].vips, [&](const Prefix& candidate) {
                return candidate.contains(vips.address()) && candidate.length() >= vips.length();
            }));
        }
    }
    return 0;
}
