// SPDX-License-Identifier: Apache-2.0
// Rules of a list of pools (LB-015). Pure.
#pragma once

#include <string>
#include <vector>

#include "control/ipam/pool.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::ipam {

// A prefix that pools may not overlap.
struct ProtectedPrefix {
    Prefix prefix;
    std::string what;  // for the error: "the Pods' addresses"
};

// One mistake of each pool that breaks a rule, in the words of validate(). A pool that breaks one takes part
// in the rules about several pools as far as it was valid.
[[nodiscard]] std::vector<std::string> mistakes_in(std::vector<Pool> pools,
                                                   const std::vector<ProtectedPrefix>& protected_prefixes);

// Sorts the ranges of the pools as the allocator requires, and validates the whole list: names, ranges,
// overlaps between pools and with protected prefixes, reservations, fences. Error: InvalidArgument, which
// names pool and field. The caller keeps the previous list in this case.
[[nodiscard]] Result<std::vector<Pool>> validate(std::vector<Pool> pools,
                                                 const std::vector<ProtectedPrefix>& protected_prefixes);

}  // namespace penstock::ipam
