// SPDX-License-Identifier: Apache-2.0
// Options of penstock-sync that determine the policy by which objects are evaluated.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <string>
#include <vector>

#include "control/semantics/policy.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// All of the policy except the rules of the file of --external-ip-policy. InvalidArgument names the option
// and the rule.
[[nodiscard]] Result<semantics::Policy> read_policy(const boost::program_options::variables_map& values);

// Warnings about valid but possibly surprising values: --nodeport-addresses with prefixes of one IP family
// leave the other family unrestricted (NODEPORT-003).
[[nodiscard]] std::vector<std::string> hints_of(const semantics::Policy& policy);

}  // namespace penstock::sync
