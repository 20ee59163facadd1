// SPDX-License-Identifier: Apache-2.0
// Settings of the allocation from the options of penstock-sync. Pure.
#pragma once

#include <vector>

#include "control/sync/addresses/address_assignment.hpp"
#include "control/sync/options.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::sync {

// No pool may overlap the cluster's own addresses, nor those of the API server (`server`).
[[nodiscard]] AddressAssignment::Settings assignment_settings(const Options& options,
                                                              const std::vector<IpAddr>& server);

}  // namespace penstock::sync
