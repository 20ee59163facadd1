// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/share_families.hpp"

#include <string>
#include <utility>

#include "control/metrics/family.hpp"

namespace penstock::metrics {

void add_share_families(const ShareReading& shares, std::vector<prometheus::MetricFamily>& out) {
    out.push_back(single(gauge("penstock_shares_plan_version", "version of the plan of shares in force"),
                         static_cast<double>(shares.plan_version)));
    out.push_back(
        single(gauge("penstock_shares_plan_fault",
                     "1 while the file of the plan of shares is not in force, or the plan is not saved"),
               shares.has_fault ? 1 : 0));
    prometheus::MetricFamily roles = gauge("penstock_share_role", "1: the role of this gateway in a share");
    for (const ShareReading::Share& share : shares.shares) {
        add(roles, {{"share", std::to_string(share.number)}, {"role", share.role}}, 1);
    }
    out.push_back(std::move(roles));
}

}  // namespace penstock::metrics
