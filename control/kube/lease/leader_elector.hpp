// SPDX-License-Identifier: Apache-2.0
// Elects one leader among the processes that use the same Lease (LEASE-001 to LEASE-004). The leader alone
// allocates addresses and writes status; gateways are programmed by every process, leader or not. A machine
// without I/O, clock and thread: advance() receives the time. Source thread only, except status().
//
//   round of a follower: GET -> the record is released, or unchanged for its duration -> PATCH (take over)
//   round of the leader: PATCH (renew)
//   a 409 in a round:    the next round reads the Lease; no takeover in this one
//   a 404:               POST
//
// Guarantee: at most one elector is leader at any time, if monotonic clocks of the processes differ in rate
// by less than a third and nobody edits or deletes the Lease by hand. A leader is valid for kRenewDeadline
// (10 s) after the START of its last successful renewal. The record changed after that start, and others wait
// kLeaseDuration (15 s) after they have seen the change.
//
// A process can be frozen at any instruction. Test is_leader() with a clock read directly before each write.
// A process that is frozen between the test and the write still writes late; AddressWriter describes how a
// new leader makes such writes fail (docs/adr/0035-leader-election-and-status-writes.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/events/write_limiter.hpp"
#include "control/kube/lease/lease.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/random_source.hpp"
#include "control/kube/status/one_response.hpp"
#include "control/kube/status/write_status.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

// Three attempts fit into kRenewDeadline.
inline constexpr std::chrono::seconds kLeaseTimeout{3};
// A round starts after kRetryPeriod times a random factor from 1 to 1 + kLeaseJitter.
inline constexpr double kLeaseJitter = 0.25;
// Wait after 403, and after 404 of the namespace.
inline constexpr std::chrono::seconds kLeaseRefusedPause{10};

class LeaderElector {
 public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;

    struct Settings {
        ObjectName lease;      // namespace and name
        std::string identity;  // unique to this process start: "HOST-PID-RANDOM"
    };

    // `transport` and `limiter` outlive this.
    LeaderElector(Settings settings, Transport& transport, WriteLimiter& limiter, RandomSource random);
    ~LeaderElector();
    LeaderElector(const LeaderElector&) = delete;
    LeaderElector& operator=(const LeaderElector&) = delete;

    // True until kRenewDeadline after the start of the last successful renewal. `now`: read for this call.
    [[nodiscard]] bool is_leader(Time now) const { return now < leads_until_; }
    // Increases each time this process becomes leader; 0: never was. A reader that sees a new number must
    // bring its view of the cluster up to date before its first decision (LB-008).
    [[nodiscard]] uint64_t term() const { return term_; }

    // Call after each poll of the transport and at next_wake(). `now` is at most the time of this call:
    // renewals count from it.
    void advance(Time now, WallTime wall);
    // Includes the time at which leadership ends.
    [[nodiscard]] std::optional<Time> next_wake() const;

    // Clean shutdown: is_leader() is false from now on. The Lease is released by a last request. Call
    // advance() as before until is_released().
    void release();
    // release() was called, and its request has ended, failed, or was not needed.
    [[nodiscard]] bool is_released() const { return step_ == Step::Released; }

    // Log lines since the last call.
    [[nodiscard]] std::vector<LogLine> take_log() { return log_.take(); }
    // Any thread.
    [[nodiscard]] LeadershipStatus status() const;

 private:
    // The request in progress, or the state between rounds.
    enum class Step : uint8_t { Idle, Read, Create, Claim, Renew, Release, Released };

    void start_round(Time now, WallTime wall);
    void send(Step step, Request request, Time now);
    void patch(Step step, std::string body, Time now);
    [[nodiscard]] std::string target() const;
    // The record, as last seen, names this process.
    [[nodiscard]] bool is_held() const;
    void process_response(Time now, WallTime wall);
    void process_success(Time now, WallTime wall);
    void process_refusal(Time now, WallTime wall);
    // A record that was read or written.
    void observe(Lease lease, Time now);
    [[nodiscard]] bool is_claimable(Time now) const;
    void lead(Time since);
    void step_down(const std::string& why);
    void end_round(Time now);
    void report_refusal(const std::string& why);
    void publish(Time now);

    const Settings settings_;
    Transport& transport_;
    WriteLimiter& limiter_;
    const RandomSource random_;
    JsonTree tree_;
    LogLines log_;

    OneResponse response_;
    std::optional<Transport::RequestId> request_;
    Step step_ = Step::Idle;
    Time sent_at_{};  // start of the request in progress
    Time next_round_ = Time::min();
    bool is_releasing_ = false;

    std::optional<Lease> lease_;           // as last read or written; nullopt: unknown, to be read first
    std::optional<Time> unchanged_since_;  // when the record of lease_ was seen first
    Time leads_until_ = Time::min();
    bool leads_ = false;  // leadership was gained and its end not noticed yet
    uint64_t term_ = 0;
    std::string refused_why_;  // last refusal that was logged

    mutable std::mutex mutex_;
    LeadershipStatus counts_;
    LeadershipStatus published_;  // guarded by mutex_
};

}  // namespace penstock::kube
