// SPDX-License-Identifier: Apache-2.0
// How long the operations of a CopyBook hold its lock. Streams of other gateways, views and the forwarding of
// strays wait meanwhile.
#pragma once

#include "perf/harness/options.hpp"

namespace penstock::perf {

// Prints the longest hold of each operation, in milliseconds of processor time: the minimum and the median of
// several runs. A run has a new book, with `connections` copies of one gateway.
void measure_holds(const Options& options, uint32_t connections);

}  // namespace penstock::perf
