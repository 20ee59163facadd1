// SPDX-License-Identifier: Apache-2.0
// Random numbers that are equal in every run, and the orders in which connections are visited: uniform (for
// gates), Zipf 0.99 (a few connections carry most packets), sequential (the processor's prefetchers hide the
// table).
#pragma once

#include <cstdint>
#include <string_view>

#include "dataplane/base/cpu.hpp"

namespace penstock::perf {

// splitmix64 (Steele, Lea, Flood 2014).
class Prng {
 public:
    explicit constexpr Prng(uint64_t seed) noexcept : state_(seed) {}
    constexpr uint64_t next() noexcept {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    // Below `n`, which is below 2^32.
    constexpr uint32_t below(uint32_t n) noexcept {
        return static_cast<uint32_t>(((next() >> 32) * n) >> 32);
    }
    // In [0, 1).
    constexpr double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
    uint64_t state_;
};

enum class OrderKind : uint8_t { Uniform, Zipf, Sequential };
[[nodiscard]] std::string_view to_string(OrderKind kind) noexcept;

// An endless order of 0 .. n-1.
class Order {
 public:
    Order(OrderKind kind, uint32_t n, uint64_t seed);
    [[nodiscard]] uint32_t next() noexcept;

 private:
    [[nodiscard]] uint32_t zipf() noexcept;

    OrderKind kind_;
    uint32_t n_;
    Prng prng_;
    uint32_t position_ = 0;
    // Gray et al. 1994, "Quickly generating billion-record synthetic databases", as YCSB uses it.
    double zeta_ = 0, alpha_ = 0, eta_ = 0;
};

}  // namespace penstock::perf
