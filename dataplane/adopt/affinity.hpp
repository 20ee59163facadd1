// SPDX-License-Identifier: Apache-2.0
// Adopts the session affinity of a former process: its clients keep their endpoints (docs/adr/0038). As for
// connections, nothing of the former memory is trusted. An entry is adopted if its Service has affinity in
// the current snapshot, its endpoint is one of that Service at the same address, and its time is not over. It
// gets the current numbers, epoch and stay, and keeps its age.
#pragma once

#include <cstdint>

#include "dataplane/adopt/former.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/lb/affinity.hpp"

namespace penstock::adopt {

struct AffinityAdoption {
    uint64_t adopted = 0;
    uint64_t lost = 0;
};

// `table` is new. `now`: of the TSC.
AffinityAdoption adopt_affinity(const FormerTables& former, const config::Snapshot& snapshot,
                                lb::AffinityTable& table, TscRate rate, TscTime now);

}  // namespace penstock::adopt
