// What a result was taken on. Figures of two fingerprints must not be compared; ratios within one run may.
#pragma once

namespace penstock::perf {

// Lines of `fingerprint NAME TEXT`: processor, TSC, kernel, hugepages, load average, share of stolen time, compiler and options.
// Raises the process's priority where it may.
void print_fingerprint();

}  // namespace penstock::perf
