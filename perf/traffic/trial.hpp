// SPDX-License-Identifier: Apache-2.0
// One trial by RFC 2544 (26.1): sends frames at a steady rate for some time and counts the returned ones. One
// thread plays the clients on one DPDK port and the endpoints, which answer every frame, on another; the
// gateway is between the two.
//
// The rate follows the clock and not the returned frames (an open loop). A delayed sender does not catch up
// with a burst, which no wire would carry: it continues at the rate, and the result reports the actual rate.
#pragma once

#include <cstdint>

#include "perf/traffic/latency.hpp"

struct rte_mempool;

namespace penstock::perf {

struct TrialPorts {
    uint16_t clients = 0;
    uint16_t endpoints = 0;
    rte_mempool* pool = nullptr;
    bool source_kept = false;  // the endpoints must see the client's own address
};

enum class FlowOrder : uint8_t {
    Random,  // uniformly, by a generator that starts the same for every trial
    Once,    // each once, in order
};

struct TrialPlan {
    double rate = 0;  // frames per second from the clients
    double seconds = 0;
    uint32_t first_flow = 0;
    uint32_t flows = 1;
    FlowOrder order = FlowOrder::Random;  // Once ends the trial after `flows` frames
    bool verify_all = false;              // checksums of every received frame, not only of one in 64
};

struct TrialResult {
    uint64_t offered = 0;          // frames due from the clients
    uint64_t blocked = 0;          // of those: the gateway's receive ring was full
    uint64_t reached = 0;          // arrived at endpoints
    uint64_t answers_blocked = 0;  // like blocked, for the answers
    uint64_t returned = 0;         // arrived back at clients
    uint64_t wrong = 0;            // arrived at a wrong place, or with a wrong checksum
    uint64_t strange = 0;          // frames of others (ARP, ICMP) and of earlier trials
    double seconds = 0;
    double longest_pause_us = 0;  // of this thread: another process had its CPU
    LatencyHistogram forward, reverse;

    // Lost in either direction, as a share of offered + reached.
    [[nodiscard]] uint64_t lost() const noexcept { return (offered - reached) + (reached - returned); }
};

// The calling thread polls both ports until all frames have returned, or none has arrived for a while.
[[nodiscard]] TrialResult run_trial(const TrialPorts& ports, const TrialPlan& plan);

}  // namespace penstock::perf
