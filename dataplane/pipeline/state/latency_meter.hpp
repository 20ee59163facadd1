// SPDX-License-Identifier: Apache-2.0
// One worker's measurement of the latencies of TCP connections (docs/adr/0048): what each connection waits
// for, beside the connection table, and the histograms. Exists only with --latency-histograms. The worker
// then runs other functions for its bursts (counted_stages.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/stats/latency.hpp"

namespace penstock::pipeline {

// What a connection waits for, and since when: the time in the upper bits, the phase in the lower three, so
// that one word has both. The error of up to 7 ticks is 4 ns. Zeroed memory is valid.
class LatencyWait {
 public:
    enum class Phase : uint8_t {
        None,       // nothing: both latencies are measured, or cannot be
        Connect,    // the endpoint's SYN-ACK, since the client's SYN
        Handshake,  // the client's ACK of it, since the SYN-ACK
        Request,    // payload of either side, since that ACK
        FirstByte,  // payload of the endpoint, since the client's first payload
    };
    LatencyWait() = default;
    LatencyWait(Phase phase, TscTime since) noexcept
        : value_((since.value & ~kPhaseBits) | static_cast<uint64_t>(phase)) {}

    [[nodiscard]] bool is_none() const noexcept { return value_ == 0; }
    [[nodiscard]] Phase phase() const noexcept { return static_cast<Phase>(value_ & kPhaseBits); }
    [[nodiscard]] TscTime since() const noexcept { return {value_ & ~kPhaseBits}; }

 private:
    static constexpr uint64_t kPhaseBits = 7;
    uint64_t value_ = 0;
};
static_assert(sizeof(LatencyWait) == 8);

// Written by the worker. The histograms are read by any thread.
struct LatencyMeter {
    std::span<LatencyWait> waits;  // as many as the connection table has units
    stats::LatencyBounds bounds{};
    std::span<stats::LatencyCounters> services;  // by ServiceId
    std::span<stats::LatencyCounters> backends;  // by BackendId; empty: not measured by backend

    void prefetch(ConnectionIndex index) const noexcept { prefetch_read(&waits[index.value]); }
    [[nodiscard]] bool is_waiting(ConnectionIndex index) const noexcept {
        return !waits[index.value].is_none();
    }
};

}  // namespace penstock::pipeline
