// SPDX-License-Identifier: Apache-2.0
// Reproducible randomness: every random test draws from seed(), which is printed once and can be set with
// PENSTOCK_SEED.
#pragma once

#include <cstdint>

namespace penstock::test {

// The seed of this run: the number in PENSTOCK_SEED, otherwise one from the machine. The first call prints
// it. Stops the program if PENSTOCK_SEED is set but not a number, because otherwise the run would not be the
// intended replay.
[[nodiscard]] uint64_t seed();

}  // namespace penstock::test
