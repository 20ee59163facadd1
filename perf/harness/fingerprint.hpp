// SPDX-License-Identifier: Apache-2.0
// The machine and the build of a result. Values of two fingerprints must not be compared; ratios within one
// run may.
#pragma once

namespace penstock::perf {

// Prints lines of `fingerprint NAME TEXT`: processor, TSC, kernel, hugepages, load average, share of stolen
// time, compiler and options. Raises the priority of the process, and of its session if the kernel shares
// processors between sessions; `fingerprint priority` reports the granted priority.
void print_fingerprint();

}  // namespace penstock::perf
