// Randomness that can be replayed: every random test draws from seed(), which is printed once and can be given back as PENSTOCK_SEED.
#pragma once

#include <cstdint>

namespace penstock::test {

// The seed of this run: the number in PENSTOCK_SEED, else one from the machine. The first call prints it. Stops the program where
// PENSTOCK_SEED is set and is no number, because a replay that silently is none misleads.
[[nodiscard]] uint64_t seed();

}  // namespace penstock::test
