// SPDX-License-Identifier: Apache-2.0
// Counts the rooms' hot calls one by one, separately from the stages that call them. This distinguishes a
// larger stage from a slower table.
#pragma once

#include "dataplane/base/ip.hpp"
#include "dataplane/config/snapshot.hpp"

namespace penstock::perf {

void count_rooms(IpFamily family, const config::Snapshot& snapshot);

}  // namespace penstock::perf
