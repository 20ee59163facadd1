// SPDX-License-Identifier: Apache-2.0
// The tests' random number generator: SplitMix64 (Steele, Lea and Flood, 2014). Unlike the standard
// distributions it produces the same sequence with every compiler and library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/seed.hpp"

namespace penstock::test {

class Prng {
 public:
    explicit Prng(uint64_t start = seed()) : state_(start) {}

    uint64_t next() {
        state_ += 0x9e3779b97f4a7c15ULL;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    // 0 .. bound-1; the bias towards small numbers is below bound/2^64. `bound` is not 0.
    uint64_t below(uint64_t bound) { return next() % bound; }
    // first .. last, both included.
    uint64_t between(uint64_t first, uint64_t last) { return first + below(last - first + 1); }
    bool one_in(uint64_t n) { return below(n) == 0; }
    uint8_t byte() { return static_cast<uint8_t>(next() >> 56); }

    std::vector<uint8_t> bytes(size_t count) {
        std::vector<uint8_t> drawn(count);
        for (uint8_t& value : drawn) {
            value = byte();
        }
        return drawn;
    }

 private:
    uint64_t state_;
};

}  // namespace penstock::test
