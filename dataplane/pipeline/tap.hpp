// SPDX-License-Identifier: Apache-2.0
// One worker's side of a packet capture: selects packets, and copies them into a ring of records. Exists only
// while a capture runs; the worker then polls in a loop of its own (worker/worker.cpp), and tx.cpp reports
// what leaves and what is dropped. Without a capture none of this is called.
//
//   arrived()     before the stages: the filter; copies the packets that may be selected
//   decided()     behind the stages: selects, and records them as they arrived, with their verdict
//   leaving()     in tx.cpp: records packets as they leave; dropped() in tx.cpp: late drops
//   disposed()    the burst is gone; packets held for their next hop remain known by their buffer
//
// Packets that leave or are dropped outside of a burst (segments of the gateway's own, packets held since
// before the capture) are selected by their frame alone. Nothing is allocated after construction.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/capture/program.hpp"
#include "dataplane/capture/record.hpp"
#include "dataplane/capture/record_ring.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

struct TapOptions {
    capture::Program filter;
    // The form of a packet that the filter is applied to.
    enum class Form : uint8_t { Received, Translated, Either };
    Form form = Form::Received;
    std::optional<std::vector<ServiceId>> services = {};  // only packets of these; empty: any
    std::optional<IpAddr> client = {};                    // only packets of this client's connections
    capture::Points points = capture::Points::all();
    uint32_t snap_bytes = 128;
};

class Tap {
 public:
    // `ring_slots`: a power of two.
    Tap(const TapOptions& options, uint32_t ring_slots)
        : options_(options),
          ring_(ring_slots, options.snap_bytes),
          copies_(size_t{limits::kBurstMax} * options.snap_bytes) {}

    // Reading of the TSC for the next records.
    void set_time(uint64_t ticks) noexcept { ticks_ = ticks; }

    void arrived(Burst& burst) noexcept {
        burst_ = &burst;
        candidates_ = 0;
        tracked_ = 0;
        for (uint32_t i = 0; i < burst.count; ++i) {
            if (options_.filter.matches(burst.data[i], burst.length[i])) [[unlikely]] {
                keep(burst, i, true);
            } else if (options_.form != TapOptions::Form::Received) {
                keep(burst, i, false);
            }
        }
    }
    void decided(const WorkerContext& ctx, const Burst& burst) noexcept {
        if (candidates_ > 0) [[unlikely]] {
            select(ctx, burst);
        }
        is_in_burst_ = true;
    }
    void disposed() noexcept;

    // `count` packets are about to be given to a transmit queue. sent() follows.
    template <typename FrameOf>
    void leaving(const WorkerContext& ctx, NicPortId port, rte_mbuf* const* packets, uint32_t count,
                 FrameOf&& frame_of) noexcept {
        staged_ = 0;
        if (is_suspended_ || !options_.points.has(capture::Point::Tx) || (is_in_burst_ && tracked_ == 0)) {
            return;
        }
        for (uint32_t i = 0; i < count; ++i) {
            if (stage_leaving(ctx, port, packets[i], frame_of(packets[i]))) {
                staged_at_[staged_++] = static_cast<uint8_t>(i);
            }
        }
    }
    // Of these packets, the queue has accepted the first `count`.
    void sent(uint32_t count) noexcept;
    // A packet is about to be freed.
    void dropped(const WorkerContext& ctx, const rte_mbuf* packet, ByteView frame,
                 DropReason reason) noexcept;
    // While suspended, leaving packets are not recorded: another worker has recorded them.
    void suspend(bool is_suspended) noexcept { is_suspended_ = is_suspended; }

    [[nodiscard]] capture::RecordRing& ring() noexcept { return ring_; }
    // One of this number of selected packets is recorded.
    [[nodiscard]] uint32_t sampling() const noexcept { return sampling_; }

 private:
    // A packet of the burst that may be selected, as it arrived.
    struct Candidate {
        uint8_t packet;
        bool matches;          // the filter, as received
        bool has_key = false;  // `key` is valid
        bool is_flow = false;  // with ports
        uint16_t wire_bytes;
        packet::FlowKey key;
    };
    // A selected packet whose buffer has not left the worker yet.
    struct Tracked {
        const rte_mbuf* buffer;
        NicPortId port;  // of its arrival
        capture::Finding finding;
    };
    static constexpr uint32_t kSamplingMax = 1'024;

    PENSTOCK_NOINLINE void keep(Burst& burst, uint32_t i, bool matches) noexcept;
    PENSTOCK_NOINLINE void select(const WorkerContext& ctx, const Burst& burst) noexcept;
    [[nodiscard]] bool selects(const WorkerContext& ctx, const Burst& burst, const Candidate& candidate,
                               const capture::Finding& finding) const noexcept;
    [[nodiscard]] bool stage_leaving(const WorkerContext& ctx, NicPortId port, const rte_mbuf* packet,
                                     ByteView frame) noexcept;
    // The finding about a packet that leaves or is dropped now. Null: it is not selected.
    [[nodiscard]] Tracked* whose(const WorkerContext& ctx, const rte_mbuf* packet, ByteView frame) noexcept;
    [[nodiscard]] bool is_of_burst(const rte_mbuf* packet) const noexcept;
    [[nodiscard]] bool selects_frame(const WorkerContext& ctx, ByteView frame,
                                     capture::Finding& finding) const noexcept;
    [[nodiscard]] bool is_wanted(ServiceId service) const noexcept;
    void stage(capture::Point point, NicPortId port, const capture::Finding& finding, const uint8_t* frame,
               uint32_t wire_bytes) noexcept;
    void adapt_sampling() noexcept;

    const TapOptions options_;
    capture::RecordRing ring_;
    uint64_t ticks_ = 0;
    const Burst* burst_ = nullptr;
    bool is_in_burst_ = false;
    bool is_suspended_ = false;
    uint32_t candidates_ = 0;
    uint32_t tracked_ = 0;
    uint32_t cursor_ = 0;  // of the last search in `tracked`
    uint32_t staged_ = 0;
    uint32_t carried_ = 0;
    uint32_t sampling_ = 1;
    uint32_t turn_ = 0;
    Tracked loose_{};  // for a packet that is selected by its frame alone
    std::array<Candidate, limits::kBurstMax> candidate_;
    std::array<Tracked, limits::kBurstMax> track_;
    std::array<uint8_t, limits::kBurstMax> staged_at_;  // indexes of the packets that leaving() has staged
    std::array<Tracked, limits::kPendingMax> carry_;    // held for their next hop
    std::vector<uint8_t> copies_;                       // of the candidates' frames
};

}  // namespace penstock::pipeline
