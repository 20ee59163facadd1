// SPDX-License-Identifier: Apache-2.0
// Histograms of the latencies of TCP connections (docs/adr/0048). As with the other counters, each row has
// one writer, its worker, and readers sum the rows of all workers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.hpp"
#include "dataplane/stats/counters.hpp"

namespace penstock::stats {

// Upper bounds of the buckets, inclusive, in microseconds. The last bucket has none. 0.1 to 1 ms resolve a
// data centre. A SYN or a SYN-ACK that is lost once adds 1 s, twice 3 s, three times 7 s (RFC 6298).
inline constexpr std::array<uint32_t, 16> kLatencyBoundsUs{
    100,    250,     500,     1'000,   2'500,     5'000,     10'000,    25'000,
    50'000, 100'000, 250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};
inline constexpr size_t kLatencyBuckets = kLatencyBoundsUs.size() + 1;

// The same bounds in ticks of one machine.
using LatencyBounds = std::array<uint64_t, kLatencyBoundsUs.size()>;
[[nodiscard]] constexpr LatencyBounds latency_bounds(TscRate rate) noexcept {
    LatencyBounds bounds{};
    for (size_t i = 0; i < bounds.size(); ++i) {
        bounds[i] = kLatencyBoundsUs[i] * (rate.hz / 1'000) / 1'000;
    }
    return bounds;
}

struct LatencyHistogram {
    std::array<Tally, kLatencyBuckets> buckets;
    Tally ticks;  // sum of all values

    void add(TscTicks latency, const LatencyBounds& bounds) noexcept {
        size_t bucket = 0;
        while (bucket < bounds.size() && latency.value > bounds[bucket]) {
            ++bucket;
        }
        buckets[bucket].add(1);
        ticks.add(latency.value);
    }
};

// Of a Service or a backend.
struct LatencyCounters {
    LatencyHistogram connect;
    LatencyHistogram first_byte;
};

}  // namespace penstock::stats
