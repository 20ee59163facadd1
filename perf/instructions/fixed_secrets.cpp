// SPDX-License-Identifier: Apache-2.0
// The same "random" bytes in every run, so that every table has the same layout and results repeat. In a
// program linked with fixed_secrets (see meson.build) each getrandom(2) of its own objects returns them,
// HashKey::random() above all. The product has no such switch.
#include <sys/types.h>

#include <cstddef>

extern "C" ssize_t __wrap_getrandom(void* buffer, size_t length, unsigned flags) {
    static_cast<void>(flags);
    // SplitMix64 (Steele, Lea and Flood, 2014) from a fixed start; called by one thread.
    static unsigned long long state = 0x70656e73746f636bULL;
    auto* bytes = static_cast<unsigned char*>(buffer);
    for (size_t i = 0; i < length; ++i) {
        state += 0x9e3779b97f4a7c15ULL;
        unsigned long long z = state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        bytes[i] = static_cast<unsigned char>(z ^ (z >> 31));
    }
    return static_cast<ssize_t>(length);
}
