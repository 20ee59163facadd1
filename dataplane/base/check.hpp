// SPDX-License-Identifier: Apache-2.0
// Checks that stop the program when an invariant is broken. PENSTOCK_CHECK is always active (start-up and
// control paths), PENSTOCK_ASSERT in debug, test and fuzz builds only (packet path). Neither validates input,
// which yields a Result, or packets, which yield a Verdict.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace penstock::detail {
[[noreturn]] inline void check_failed(const char* claim, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, claim);
    std::abort();
}
}  // namespace penstock::detail

#define PENSTOCK_CHECK(claim) \
    ((claim) ? static_cast<void>(0) : ::penstock::detail::check_failed(#claim, __FILE__, __LINE__))

#ifdef PENSTOCK_ASSERTIONS
#define PENSTOCK_ASSERT(claim) PENSTOCK_CHECK(claim)
#else
#define PENSTOCK_ASSERT(claim) static_cast<void>(0)
#endif
