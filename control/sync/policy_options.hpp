// SPDX-License-Identifier: Apache-2.0
// Options of penstock-sync that determine the policy by which objects are evaluated: all of the policy except
// the rules of the file of --external-ip-policy.
#pragma once

#include <string>
#include <vector>

#include "control/options/option_set.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::sync {

// Add the options to `set`, which stores into `policy`.
void add_right_options(options::OptionSet& set, semantics::Policy& policy);
void add_service_options(options::OptionSet& set, semantics::Policy& policy);

// Warnings about valid but possibly surprising values: --nodeport-addresses with prefixes of one IP family
// leave the other family unrestricted (NODEPORT-003).
[[nodiscard]] std::vector<std::string> hints_of(const semantics::Policy& policy);

}  // namespace penstock::sync
