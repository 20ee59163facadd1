// SPDX-License-Identifier: Apache-2.0
// The parts of the table bench; each prints its own lines.
#pragma once

#include "perf/harness/options.hpp"

namespace penstock::perf {

// G1: N keys on both sides, bursts of 32, with the state of each hit's connection; also other orders, and
// misses. Penstock's table begins each burst before it ends the previous one, which rte_hash's bulk look-up
// cannot. lookup_alone.* is the same comparison without that overlap.
void measure_lookup(const Options& options);

// G3: delete and insert of a connection, and the load at which insertion first fails.
void measure_setup(const Options& options);

// G12: bytes per connection at 10M, as the rooms request from the allocator.
void measure_memory();

}  // namespace penstock::perf
