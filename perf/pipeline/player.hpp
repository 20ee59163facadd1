// SPDX-License-Identifier: Apache-2.0
// Plays packets through a gateway: creates frames in few buffers, times the stages burst by burst, and checks
// each forwarded frame. Time is virtual: it advances by the duration of the bursts. It is therefore the time
// of a busy worker, without the machine's other work.
//
// The frames of this class are in plain memory. perf/worker passes them through ports.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "perf/harness/memory.hpp"
#include "perf/harness/windows.hpp"
#include "perf/pipeline/gateway.hpp"

namespace penstock::perf {

struct Packet {
    enum class Outcome : uint8_t {
        Translated,  // leaves as `expected`
        Opens,       // leaves for an endpoint of the gateway's choice, which `leaves_as` then contains
        Refused,     // does not pass
    };
    packet::FlowKey key;
    packet::FlowKey expected;
    packet::FlowKey leaves_as;
    uint32_t number = 0;  // of its connection
    uint8_t tcp_flags = 0;
    bool from_client = true;
    Outcome outcome = Outcome::Translated;
};

// Cycles by stage, in the order in which run_stages() calls them, after receive; the names are the stages'.
struct StageCosts {
    static constexpr std::array<const char*, 5> kNames = {"receive", "classify", "conn_lookup", "serve_hits",
                                                          "new_flow"};
    std::array<uint64_t, kNames.size()> cycles{};
    uint64_t packets = 0;
};

class Player {
 public:
    // Frames in flight at once; equal to the size of a batch.
    static constexpr uint32_t kFramesMax = 512;

    // Bursts of `burst` packets, at most limits::kBurstMax. `hz` as for the gateway.
    Player(Gateway& gateway, uint32_t burst, uint64_t hz);
    virtual ~Player() = default;
    Player(const Player&) = delete;
    Player& operator=(const Player&) = delete;

    // Sends them, at most kFramesMax. Ends the program if a result is not the expected one.
    void play(std::span<Packet> packets, BurstClock& clock);

    // Ticks of virtual time that pass for each packet in addition to those of its burst.
    void set_ticks_per_packet(uint64_t ticks) noexcept { ticks_per_packet_ = ticks; }

    // From now on, also stops the clock between stages. Stages then do not overlap, so their sum exceeds the
    // total.
    void count_stages(StageCosts* costs) noexcept { stage_costs_ = costs; }

    [[nodiscard]] uint64_t expiry_cycles() const noexcept { return expiry_cycles_; }
    [[nodiscard]] uint64_t expired() const noexcept { return expired_; }

 protected:
    // For subclasses with buffers of their own, and room for `frames_max` in place of kFramesMax.
    Player(Gateway& gateway, uint64_t hz, uint32_t frames_max);

    // The result of a packet. `frame` is valid until the next batch, and null if the packet was not sent.
    struct Left {
        const uint8_t* frame = nullptr;
        bool is_answer = false;  // sent back to its sender
    };
    // The buffer of frame i of the next batch.
    [[nodiscard]] virtual uint8_t* buffer(uint32_t i);
    // Timed: passes the frames of the batch, which are in their buffers, through the gateway.
    virtual void run_bursts(std::span<const Packet> packets, BurstClock& clock);
    [[nodiscard]] virtual Left left(uint32_t i) const;

    [[nodiscard]] Gateway& gateway() noexcept { return gateway_; }
    [[nodiscard]] uint16_t length(uint32_t i) const noexcept { return length_[i]; }
    // Starts a round of the worker at the present time.
    void begin_round() noexcept;
    // The time that `packets` took, measured as `cycles`. An interruption does not count as the worker's
    // time.
    void advance(uint64_t cycles, uint32_t packets) noexcept;

 private:
    void run_stages_apart(uint64_t received_in);
    void check(Packet& packet, uint32_t i) const;
    void housekeeping();

    Gateway& gateway_;
    const uint32_t burst_size_;
    const TscTicks housekeeping_period_;
    HugeMemory buffers_;
    std::vector<uint16_t> length_;
    std::array<NicPortId, kFramesMax> port_{};
    std::array<Verdict, kFramesMax> verdict_{};
    std::array<bool, kFramesMax> answers_{};
    pipeline::Burst burst_;
    TscTime now_;
    TscTime next_housekeeping_;
    uint64_t ticks_per_packet_ = 0;
    uint64_t expiry_cycles_ = 0;
    uint64_t expired_ = 0;
    StageCosts* stage_costs_ = nullptr;
};

}  // namespace penstock::perf
