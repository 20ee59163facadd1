// SPDX-License-Identifier: Apache-2.0
#include "perf/traffic/trial.hpp"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "dataplane/base/cpu.hpp"
#include "perf/traffic/network.hpp"

namespace penstock::perf {
namespace {

constexpr uint16_t kBurst = 32;
// A frame this late counts as lost in a trial. It is longer than any process preempts the gateway.
constexpr double kPatienceSeconds = 0.1;
// Frames that the sender may be behind its schedule before the schedule moves: the number that a device's
// queue of 1,024 takes without loss.
constexpr uint64_t kBehindMax = 256;
constexpr uint32_t kVerifyOneIn = 64;

class Trial {
 public:
    Trial(const TrialPorts& ports, const TrialPlan& plan, uint16_t run)
        : ports_(ports), plan_(plan), run_(run) {}

    TrialResult go() {
        const auto hz = static_cast<double>(rte_get_tsc_hz());
        const double frames_per_tick = plan_.rate / hz;
        const auto planned = plan_.order == FlowOrder::Once
                                 ? uint64_t{plan_.flows}
                                 : static_cast<uint64_t>(plan_.rate * plan_.seconds);
        const uint64_t began = rte_rdtsc();
        const auto ends = began + static_cast<uint64_t>(plan_.seconds * hz);
        const auto patience = static_cast<uint64_t>(kPatienceSeconds * hz);
        uint64_t schedule_began = began, before = began, last_arrival = began, longest = 0;
        bool sending = true;
        for (;;) {
            const uint64_t now = rte_rdtsc();
            longest = std::max(longest, now - before);
            before = now;
            if (sending) {
                uint64_t due =
                    static_cast<uint64_t>(static_cast<double>(now - schedule_began) * frames_per_tick);
                if (due > result_.offered + kBehindMax) {
                    schedule_began =
                        now - static_cast<uint64_t>(static_cast<double>(result_.offered + kBurst) /
                                                    frames_per_tick);
                    due = result_.offered + kBurst;
                }
                due = std::min(due, planned);
                if (due > result_.offered) {
                    send(static_cast<uint16_t>(std::min<uint64_t>(due - result_.offered, kBurst)));
                }
                if (result_.offered >= planned || now >= ends) {
                    sending = false;
                    result_.seconds = static_cast<double>(now - began) / hz;
                    last_arrival = now;
                }
            }
            const bool any = static_cast<int>(answer()) + static_cast<int>(take_back()) > 0;
            if (any) {
                last_arrival = now;
            } else if (!sending && (result_.returned == result_.offered || now - last_arrival > patience)) {
                break;
            }
        }
        result_.longest_pause_us = static_cast<double>(longest) / hz * 1e6;
        return result_;
    }

 private:
    uint32_t next_flow() noexcept {
        if (plan_.order == FlowOrder::Once) {
            return plan_.first_flow + static_cast<uint32_t>(result_.offered + position_++);
        }
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return plan_.first_flow + static_cast<uint32_t>(((random_ >> 32) * plan_.flows) >> 32);
    }

    void send(uint16_t count) {
        std::array<rte_mbuf*, kBurst> mbufs;
        if (rte_pktmbuf_alloc_bulk(ports_.pool, mbufs.data(), count) != 0) {
            return;  // all buffers are in flight; due frames wait, which lowers the measured rate
        }
        const uint64_t now = rte_rdtsc();
        position_ = 0;
        for (uint16_t i = 0; i < count; ++i) {
            const uint32_t flow = next_flow();
            writer_.write(rte_pktmbuf_mtod(mbufs[i], uint8_t*), forward_tuple(flow), flow, run_, now);
            mbufs[i]->data_len = kFrameBytes;
            mbufs[i]->pkt_len = kFrameBytes;
        }
        const uint16_t sent = rte_eth_tx_burst(ports_.clients, 0, mbufs.data(), count);
        result_.offered += count;
        result_.blocked += count - sent;
        rte_pktmbuf_free_bulk(mbufs.data() + sent, count - sent);
    }

    bool answer() {
        std::array<rte_mbuf*, kBurst> mbufs;
        const uint16_t taken = rte_eth_rx_burst(ports_.endpoints, 0, mbufs.data(), kBurst);
        if (taken == 0) {
            return false;
        }
        const uint64_t now = rte_rdtsc();
        uint16_t answers = 0;
        for (uint16_t i = 0; i < taken; ++i) {
            auto* const frame = rte_pktmbuf_mtod(mbufs[i], uint8_t*);
            if (!is_of_this_run(mbufs[i])) {
                ++result_.strange;
                rte_pktmbuf_free(mbufs[i]);
                continue;
            }
            const uint32_t flow = flow_of(frame);
            const Tuple tuple = tuple_of(frame);
            const bool kept = tuple.source == forward_tuple(flow).source &&
                              tuple.source_port == forward_tuple(flow).source_port;
            if (!is_endpoint_of(flow, tuple.destination, tuple.destination_port) ||
                kept != ports_.source_kept || !is_sound(frame)) {
                ++result_.wrong;
            }
            ++result_.reached;
            result_.forward.add((now - time_of(frame)) & kTimeMask);
            turn_around(frame, now);
            mbufs[answers++] = mbufs[i];
        }
        const uint16_t sent = rte_eth_tx_burst(ports_.endpoints, 0, mbufs.data(), answers);
        result_.answers_blocked += answers - sent;
        rte_pktmbuf_free_bulk(mbufs.data() + sent, answers - sent);
        return true;
    }

    bool take_back() {
        std::array<rte_mbuf*, kBurst> mbufs;
        const uint16_t taken = rte_eth_rx_burst(ports_.clients, 0, mbufs.data(), kBurst);
        if (taken == 0) {
            return false;
        }
        const uint64_t now = rte_rdtsc();
        for (uint16_t i = 0; i < taken; ++i) {
            const auto* const frame = rte_pktmbuf_mtod(mbufs[i], const uint8_t*);
            if (!is_of_this_run(mbufs[i])) {
                ++result_.strange;
                continue;
            }
            if (tuple_of(frame) != answer_tuple(flow_of(frame)) || !is_sound(frame)) {
                ++result_.wrong;
            }
            ++result_.returned;
            result_.reverse.add((now - time_of(frame)) & kTimeMask);
        }
        rte_pktmbuf_free_bulk(mbufs.data(), taken);
        return true;
    }

    [[nodiscard]] bool is_of_this_run(const rte_mbuf* mbuf) const noexcept {
        const auto* const frame = rte_pktmbuf_mtod(mbuf, const uint8_t*);
        return is_ours(frame, mbuf->pkt_len) && run_of(frame) == run_;
    }
    // Checksums are verified in some frames only, so that the sender does not become the bottleneck.
    [[nodiscard]] bool is_sound(const uint8_t* frame) noexcept {
        return (!plan_.verify_all && ++unverified_ % kVerifyOneIn != 0) || has_valid_checksums(frame);
    }

    const TrialPorts& ports_;
    const TrialPlan& plan_;
    const uint16_t run_;
    const FrameWriter writer_{kRouterMac, kUpMac};
    uint64_t random_ = 0x9e37'79b9'7f4a'7c15;
    uint32_t position_ = 0;
    uint32_t unverified_ = 0;
    TrialResult result_;
};

}  // namespace

TrialResult run_trial(const TrialPorts& ports, const TrialPlan& plan) {
    static std::atomic<uint16_t> runs{0};
    return Trial(ports, plan, ++runs).go();
}

}  // namespace penstock::perf
