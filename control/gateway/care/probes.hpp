// SPDX-License-Identifier: Apache-2.0
// The probe schedule: when each endpoint is probed, and how results are evaluated (HC-007 to HC-010). A state
// machine without sockets, clock or threads.
//
//   service ports with a probe ---> targets, shared by all users ---> due(): probe now ---> finished()
//                                                                                              | the verdict
//   take_results(): the service ports concerned <----------------------------------------------+ may change
//
// Endpoints without a probe are not included and cost nothing.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/compile/endpoint_health.hpp"
#include "control/model/desired.hpp"

namespace penstock::gateway {

struct ProbeTarget {
    SocketAddress socket;
    model::Probe::Kind kind = model::Probe::Kind::Tcp;
    std::string path;  // Http
    auto operator<=>(const ProbeTarget&) const = default;
};

// Identifies one probe. The next probe of the same target has another number.
enum class ProbeId : uint64_t {};

class ProbeSchedule {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using Results = std::vector<std::pair<model::ServiceKey, SharedHealth>>;

    struct Question {
        ProbeId id{};
        ProbeTarget target;
        Time deadline;
    };
    struct Turn {  // a change of a verdict, for the log
        ProbeTarget target;
        Health verdict = Health::Unprobed;
        model::ServiceKey user;  // one of the users
        std::string why;         // of the last failure
    };
    struct Turns {
        std::vector<Turn> told;
        uint64_t left_out = 0;
    };
    struct Counters {
        uint64_t sent = 0, succeeded = 0, failed = 0, turned_up = 0, turned_down = 0;
        uint64_t targets = 0, down = 0;  // now
    };

    // At most `open_max` probes are open at once; the others wait. `seed`: of the random spread in time.
    ProbeSchedule(size_t open_max, uint64_t seed) : open_max_(open_max), random_(seed) {}

    // The service port in force. Null, or one without a probe: probing stops at once.
    void set(const model::ServiceKey& key, std::shared_ptr<const model::Service> service, Time now);

    // The probes to start now. Each must be completed by finished(), unless cancelled.
    [[nodiscard]] std::vector<Question> due(Time now);
    // The time at which due() returns a probe; nullopt: not before a call of finished() or set().
    [[nodiscard]] std::optional<Time> next() const;
    // `why`: the reason of a failure. Cancelled ids are ignored.
    void finished(ProbeId id, bool succeeded, const std::string& why, Time now);
    // For a probe that this host could not send. It gives no result for the endpoint, which is probed again
    // later.
    void could_not_ask(ProbeId id, Time now);

    // Probes with results that are no longer needed.
    [[nodiscard]] std::vector<ProbeId> take_cancelled() { return std::exchange(cancelled_, {}); }
    // Service ports with results that changed since the last call.
    [[nodiscard]] Results take_results();
    [[nodiscard]] bool has_results() const noexcept { return !touched_.empty(); }
    // At most kTurnsTold per second: with ten thousand endpoints, thousands can change state every few
    // seconds. The others are counted, and the count is reported with the next changes.
    static constexpr uint32_t kTurnsTold = 50;
    [[nodiscard]] Turns take_turns(Time now);
    [[nodiscard]] Counters counters() const;

 private:
    struct Subject;
    // By target, not by address, so that the order of operations on several is deterministic.
    struct ByTarget {
        bool operator()(const Subject* a, const Subject* b) const noexcept { return a->target < b->target; }
    };
    // Key of waiting_: of targets due at the same time, the one planned first comes first.
    using DueKey = std::pair<Time, uint64_t>;
    struct User {
        std::shared_ptr<const model::Service> service;  // null: removed, only to be reported
        std::set<Subject*, ByTarget> subjects;
        SharedHealth told;
    };
    // A target that has users. Several users may have different settings: the shortest times and the lowest
    // thresholds apply.
    struct Subject {
        ProbeTarget target;
        std::set<model::ServiceKey> users;
        std::chrono::milliseconds interval{0};
        std::chrono::milliseconds timeout{0};
        uint32_t healthy = 0;
        uint32_t unhealthy = 0;
        Health verdict = Health::Unprobed;
        uint32_t successes = 0;  // consecutive
        uint32_t failures = 0;
        bool asked_before = false;
        Time asked_at{};
        DueKey due;  // while no probe is open
        std::optional<ProbeId> open;
    };

    Subject* take_open(ProbeId id);
    static ProbeTarget target_of(const model::Probe& probe, const SocketAddress& endpoint);
    void release(Subject& subject, const model::ServiceKey& user);
    void agree(Subject& subject);
    void plan(Subject& subject, Time due_at);
    [[nodiscard]] SharedHealth health_of(const User& user) const;
    uint64_t random() noexcept;

    const size_t open_max_;
    uint64_t random_;
    uint64_t last_id_ = 0;
    uint64_t last_planned_ = 0;
    std::map<ProbeTarget, Subject> subjects_;
    std::map<model::ServiceKey, User> users_;
    std::map<DueKey, Subject*> waiting_;  // without an open probe
    std::map<ProbeId, Subject*> open_;
    std::vector<ProbeId> cancelled_;
    std::set<model::ServiceKey> touched_;
    std::vector<Turn> turns_;
    Time telling_since_{};
    uint32_t told_ = 0;  // since telling_since_
    uint64_t left_out_ = 0;
    Counters counters_;
};

}  // namespace penstock::gateway
