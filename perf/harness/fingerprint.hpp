// What a result was taken on. Figures of two fingerprints must not be compared; ratios within one run may.
#pragma once

namespace penstock::perf {

// Lines of `fingerprint NAME TEXT`: processor, TSC, kernel, hugepages, load average, share of stolen time, compiler and options.
// Raises the priority of the process, and of its session where the kernel shares processors between sessions; `fingerprint priority` names
// what was granted.
void print_fingerprint();

}  // namespace penstock::perf
