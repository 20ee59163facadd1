// SPDX-License-Identifier: Apache-2.0
#include "tests/support/seed.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace penstock::test {
namespace {

uint64_t draw() {
    const char* given = std::getenv("PENSTOCK_SEED");
    if (given == nullptr) {
        std::random_device machine;
        return (uint64_t{machine()} << 32) | machine();
    }
    char* end = nullptr;
    errno = 0;
    const uint64_t value = std::strtoull(given, &end, 0);
    if (end == given || *end != '\0' || errno != 0) {
        std::fprintf(stderr, "PENSTOCK_SEED=%s is not a 64-bit number\n", given);
        std::exit(2);
    }
    return value;
}

}  // namespace

uint64_t seed() {
    static const uint64_t value = [] {
        const uint64_t drawn = draw();
        std::fprintf(stderr, "PENSTOCK_SEED=%llu replays this run\n", static_cast<unsigned long long>(drawn));
        return drawn;
    }();
    return value;
}

}  // namespace penstock::test
