// SPDX-License-Identifier: Apache-2.0
// Secrets that follow PENSTOCK_SEED. In a program linked with seeded_secrets (see meson.build), each
// getrandom(2) of the program's own objects returns these bytes, HashKey::random() above all. A replay
// therefore has the same hashes and table layouts. The product has no such switch.
#include <sys/types.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "tests/support/prng.hpp"

// Called by one thread.
extern "C" ssize_t __wrap_getrandom(void* buffer, size_t length, unsigned flags) {
    static_cast<void>(flags);
    static penstock::test::Prng secrets(~penstock::test::seed());
    const std::vector<uint8_t> drawn = secrets.bytes(length);
    std::memcpy(buffer, drawn.data(), length);
    return static_cast<ssize_t>(length);
}
