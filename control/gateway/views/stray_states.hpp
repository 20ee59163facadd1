// SPDX-License-Identifier: Apache-2.0
// The states of other gateways for strays (docs/adr/0051), for views and metrics.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dataplane/config/snapshot.hpp"
#include "dataplane/pipeline/opening/strays.hpp"

namespace penstock::gateway {

// Of each other gateway by name, in the order of the plan that workers use. Empty: it forwards no strays.
[[nodiscard]] std::vector<std::pair<std::string, pipeline::StrayState>> stray_states(
    const config::Snapshot& snapshot);

}  // namespace penstock::gateway
