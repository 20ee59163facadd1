// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline/player.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "dataplane/base/check.hpp"
#include "dataplane/pipeline/aging.hpp"
#include "dataplane/pipeline/classify.hpp"
#include "dataplane/pipeline/conn_lookup.hpp"
#include "dataplane/pipeline/hits.hpp"
#include "dataplane/pipeline/opening/new_flow.hpp"
#include "perf/harness/cycles.hpp"
#include "perf/pipeline/frames.hpp"

namespace penstock::perf {
namespace {

// As in an mbuf of DPDK's default size: 128 bytes of headroom, and the frame begins on a cache line.
constexpr uint32_t kBufferBytes = 2'176, kHeadroom = 128;

}  // namespace

Player::Player(Gateway& gateway, uint32_t burst, uint64_t hz)
    : gateway_(gateway),
      burst_size_(burst),
      housekeeping_period_(TscRate{hz}.milliseconds(conn::kAgingTickMs)),
      buffers_(size_t{kFramesMax} * kBufferBytes),
      length_(kFramesMax),
      now_{TscRate{hz}.seconds(1'000).value},
      next_housekeeping_(now_) {
    PENSTOCK_CHECK(burst <= limits::kBurstMax);
}

Player::Player(Gateway& gateway, uint64_t hz, uint32_t frames_max)
    : gateway_(gateway),
      burst_size_(limits::kBurstMax),
      housekeeping_period_(TscRate{hz}.milliseconds(conn::kAgingTickMs)),
      length_(frames_max),
      now_{TscRate{hz}.seconds(1'000).value},
      next_housekeeping_(now_) {}

uint8_t* Player::buffer(uint32_t i) {
    return reinterpret_cast<uint8_t*>(buffers_.span().data()) + size_t{i} * kBufferBytes + kHeadroom;
}

void Player::play(std::span<Packet> packets, BurstClock& clock) {
    PENSTOCK_CHECK(packets.size() <= length_.size());
    for (uint32_t i = 0; i < packets.size(); ++i) {
        length_[i] = make_frame(buffer(i), packets[i].key, packets[i].tcp_flags,
                                packets[i].from_client ? Gateway::kUpMac : Gateway::kClusterMac);
    }
    run_bursts(packets, clock);
    for (uint32_t i = 0; i < packets.size(); ++i) {
        check(packets[i], i);
    }
    while (now_ >= next_housekeeping_) {
        housekeeping();
        next_housekeeping_ = next_housekeeping_ + housekeeping_period_;
    }
}

void Player::begin_round() noexcept {
    gateway_.context().begin_round(&gateway_.snapshot(), now_);
}

void Player::advance(uint64_t cycles, uint32_t packets) noexcept {
    now_ = now_ + TscTicks{std::min(cycles, packets * BurstClock::kPreemptedPerOperation) +
                           packets * ticks_per_packet_};
}

// Timed: a worker's work from the moment that the PMD has delivered packets until they could be returned,
// burst after burst, as one span.
void Player::run_bursts(std::span<const Packet> packets, BurstClock& clock) {
    auto* const buffers = reinterpret_cast<uint8_t*>(buffers_.span().data()) + kHeadroom;
    const auto count = static_cast<uint32_t>(packets.size());
    for (uint32_t i = 0; i < count; ++i) {
        port_[i] = packets[i].from_client ? Gateway::kUp : Gateway::kCluster;
    }
    const uint64_t start = cycles_begin();
    begin_round();
    for (uint32_t first = 0; first < count; first += burst_size_) {
        const uint32_t end = std::min(first + burst_size_, count);
        const uint64_t received_at = stage_costs_ == nullptr ? 0 : cycles_begin();
        burst_.count = 0;
        for (uint32_t i = first; i < end; ++i) {
            prefetch_read(buffers + size_t{i} * kBufferBytes);
        }
        for (uint32_t i = first; i < end; ++i) {
            burst_.add(nullptr, buffers + size_t{i} * kBufferBytes, length_[i], kBufferBytes - kHeadroom,
                       {port_[i], {}});
        }
        if (stage_costs_ == nullptr) {
            pipeline::run_stages(gateway_.context(), burst_);
        } else {
            run_stages_apart(cycles_end() - received_at);
        }
        // The result of each packet, for check(): a few lines per burst; a worker's disposal reads as much.
        std::copy_n(burst_.verdict.begin(), end - first, verdict_.begin() + first);
        std::copy_n(burst_.answers.begin(), end - first, answers_.begin() + first);
    }
    const uint64_t cycles = cycles_end() - start;
    clock.add(cycles, count);
    advance(cycles, count);
}

void Player::run_stages_apart(uint64_t received_in) {
    using Stage = void (*)(pipeline::WorkerContext&, pipeline::Burst&);
    static constexpr std::array<Stage, StageCosts::kNames.size() - 1> kStages = {
        +[](pipeline::WorkerContext& c, pipeline::Burst& b) { pipeline::classify(c, b); },
        +[](pipeline::WorkerContext& c, pipeline::Burst& b) { pipeline::conn_lookup(c, b); },
        +[](pipeline::WorkerContext& c, pipeline::Burst& b) { pipeline::serve_hits(c, b); },
        +[](pipeline::WorkerContext& c, pipeline::Burst& b) { pipeline::new_flow(c, b); },
    };
    std::array<uint64_t, StageCosts::kNames.size()> took{received_in};
    for (size_t s = 0; s < kStages.size(); ++s) {
        const uint64_t start = cycles_begin();
        kStages[s](gateway_.context(), burst_);
        took[s + 1] = cycles_end() - start;
    }
    if (*std::max_element(took.begin(), took.end()) > burst_.count * BurstClock::kPreemptedPerOperation) {
        return;  // another thread had the processor
    }
    for (size_t s = 0; s < took.size(); ++s) {
        stage_costs_->cycles[s] += took[s] - std::min(took[s], empty_span_cycles());
    }
    stage_costs_->packets += burst_.count;
}

Player::Left Player::left(uint32_t i) const {
    if (verdict_[i] != Verdict::Transmit) {
        return {};
    }
    return {reinterpret_cast<const uint8_t*>(buffers_.span().data()) + size_t{i} * kBufferBytes + kHeadroom,
            answers_[i]};
}

void Player::check(Packet& packet, uint32_t i) const {
    const auto [frame, is_answer] = left(i);
    bool right = false;
    switch (packet.outcome) {
        case Packet::Outcome::Translated:
            right = frame != nullptr && is_translated_to(frame, packet.expected);
            break;
        case Packet::Outcome::Opens:
            packet.leaves_as = frame != nullptr ? tuple_in(frame) : packet::FlowKey{};
            right = frame != nullptr && packet.leaves_as.destination_port == Gateway::kEndpointPort &&
                    is_translated_to(frame, packet.leaves_as);
            break;
        case Packet::Outcome::Refused:
            right = frame == nullptr || is_answer;
            break;
    }
    if (!right) {
        std::fprintf(stderr, "%s (flags %02x) came out as %s, and should be %s\n",
                     packet.key.to_string().c_str(), packet.tcp_flags,
                     frame != nullptr ? tuple_in(frame).to_string().c_str() : "nothing",
                     packet.expected.to_string().c_str());
        std::exit(1);
    }
}

// As in Worker::housekeeping.
void Player::housekeeping() {
    pipeline::WorkerContext& context = gateway_.context();
    begin_round();
    const uint64_t start = cycles_begin();
    const uint32_t before = context.connections.size();
    pipeline::age_connections(context, conn::units_per_tick(context.connections.capacity()));
    const uint64_t cycles = cycles_end() - start;
    expired_ += before - context.connections.size();
    expiry_cycles_ += std::min(cycles - std::min(cycles, empty_span_cycles()),
                               uint64_t{10} * BurstClock::kPreemptedPerOperation);
}

}  // namespace penstock::perf
