// Which endpoint is asked when, and what the answers mean (HC-007 to HC-010): a machine without sockets, clock or threads.
//
//   service ports with a probe ---> targets, each once however many use it ---> due(): ask now ---> finished(): a verdict may turn
//                                                                                                        |
//   take_results(): the service ports that it concerns <-------------------------------------------------+
//
// Endpoints without a probe are not here and cost nothing.
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
    IpAddr address;
    L4Port port = 0;
    model::Probe::Kind kind = model::Probe::Kind::Tcp;
    std::string path;  // Http
    auto operator<=>(const ProbeTarget&) const = default;
};

// Names one question: another one to the same target has another number.
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
    struct Turn {  // of a verdict, for the log
        ProbeTarget target;
        Health verdict = Health::Unprobed;
        model::ServiceKey user;  // one of them
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

    // At most so many questions are open at once; the others wait their turn. `seed`: of the spread in time.
    ProbeSchedule(size_t open_max, uint64_t seed) : open_max_(open_max), random_(seed) {}

    // The service port in force; null, or one without a probe: it is probed no longer, at once.
    void set(const model::ServiceKey& key, std::shared_ptr<const model::Service> service, Time now);

    // What to ask now; each is to be answered by finished(), unless cancelled.
    [[nodiscard]] std::vector<Question> due(Time now);
    // When due() has something; nullopt: not before something is finished or set.
    [[nodiscard]] std::optional<Time> next() const;
    // `why`: of a failure. An id that was cancelled is ignored.
    void finished(ProbeId id, bool succeeded, const std::string& why, Time now);
    // The same where this host was not able to ask: it says nothing about the endpoint, whose turn comes again.
    void could_not_ask(ProbeId id, Time now);

    // Questions whose answers are of no use any more.
    [[nodiscard]] std::vector<ProbeId> take_cancelled() { return std::exchange(cancelled_, {}); }
    // Service ports of which something else is known than at the last call.
    [[nodiscard]] Results take_results();
    [[nodiscard]] bool has_results() const noexcept { return !touched_.empty(); }
    // At most kTurnsTold a second: whoever has ten thousand endpoints can make them turn every few seconds. The others are counted, and
    // said with the next that are told.
    static constexpr uint32_t kTurnsTold = 50;
    [[nodiscard]] Turns take_turns(Time now);
    [[nodiscard]] Counters counters() const;

 private:
    struct Subject;
    struct
        ByTarget {  // and not by address, so that what is done to several of them is done in one order everywhere
        bool operator()(const Subject* a, const Subject* b) const noexcept { return a->target < b->target; }
    };
    using Place = std::pair<
        Time,
        uint64_t>;  // in waiting_: of those who are due at one time, whoever was planned first comes first
    struct User {
        std::shared_ptr<const model::Service> service;  // null: gone, and only to be told
        std::set<Subject*, ByTarget> subjects;
        SharedHealth told;
    };
    // A target that somebody wants to know of. Several users may want it differently: the shortest times and the lowest thresholds count.
    struct Subject {
        ProbeTarget target;
        std::set<model::ServiceKey> users;
        std::chrono::milliseconds interval{0};
        std::chrono::milliseconds timeout{0};
        uint32_t healthy = 0;
        uint32_t unhealthy = 0;
        Health verdict = Health::Unprobed;
        uint32_t successes = 0;  // in a row
        uint32_t failures = 0;
        bool asked_before = false;
        Time asked_at{};
        Place due;  // while it is not open
        std::optional<ProbeId> open;
    };

    Subject* take_open(ProbeId id);
    static ProbeTarget target_of(const model::Probe& probe, const IpAddr& address, L4Port port);
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
    std::map<Place, Subject*> waiting_;  // not open
    std::map<ProbeId, Subject*> open_;
    std::vector<ProbeId> cancelled_;
    std::set<model::ServiceKey> touched_;
    std::vector<Turn> turns_;
    Time telling_since_{};
    uint32_t told_ = 0;  // since then
    uint64_t left_out_ = 0;
    Counters counters_;
};

}  // namespace penstock::gateway
