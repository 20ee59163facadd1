// SPDX-License-Identifier: Apache-2.0
// Posts Events about the objects of the cluster (EVT-001, EVT-002). Any thread offers Events; the source
// thread posts them, one request at a time, at the rate of the write limiter. Events have lower priority than
// serving: offering never waits, and Events that cannot be posted are dropped and counted. If the server
// forbids Events, posting pauses for kEventsForbiddenPause (a read-only installation works, RBAC-001).
//
//   offer() -> inbox -> [limit per object] -> warnings | news | repeats -> POST, or PATCH of the equal Event
//
// The name of an Event is derived from its content, so a restarted process finds the Events of an earlier
// one: POST is answered by 409, and counting continues from the count at the API server.
//
// No clock is read here: advance() receives the time. It is called after each round of the source's loop and
// at next_wake().
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/backoff.hpp"
#include "control/kube/events/event_text.hpp"
#include "control/kube/events/events_status.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/rate_limit.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

// A repetition within this time increases the count of the existing Event.
inline constexpr std::chrono::minutes kEventRepeats{10};
// Per object: this burst, then one per interval.
inline constexpr unsigned kEventsPerObject = 25;
inline constexpr std::chrono::minutes kEventsPerObjectInterval{5};
// Ten thousand Services with one problem each fit into the queue; with messages of 300 bytes they take 5 MB.
inline constexpr size_t kEventsWaitingMax = 16'384;
inline constexpr unsigned kEventTriesMax = 3;
inline constexpr std::chrono::seconds kEventTimeout{10};
inline constexpr std::chrono::minutes kEventsForbiddenPause{10};

class EventRecorder final : private ResponseHandler {
 public:
    using Clock = std::chrono::steady_clock;
    using WallTime = std::chrono::system_clock::time_point;
    // Identity of an object in the store, nullopt if it is deleted. Called on the source thread, from inside
    // advance().
    using Identify =
        std::function<std::optional<ObjectIdentity>(const std::string& kind, const ObjectName& object)>;

    // `wake` makes the source's loop call advance(); any thread. `random` spreads retries.
    EventRecorder(Transport& transport, WriteLimiter& limiter, Identify identify, RandomSource random,
                  std::function<void()> wake);
    ~EventRecorder() override;
    EventRecorder(const EventRecorder&) = delete;
    EventRecorder& operator=(const EventRecorder&) = delete;

    // Any thread; never waits.
    void offer(Event event);
    // Any thread.
    [[nodiscard]] EventsStatus status() const;

    // Source thread.
    void advance(Clock::time_point now, WallTime wall);
    // Time at which advance() has work to do even if nothing happens; nullopt: never.
    [[nodiscard]] std::optional<Clock::time_point> next_wake() const;

 private:
    // Content of an Event; Events with equal content share one record.
    struct Record {
        std::string name;  // at the API server; "" before the Event exists there
        EventTimes times{.count = 0, .first = {}, .last = {}};
        uint64_t told = 0;    // repetitions in times.count that the API server has
        uint64_t before = 0;  // count of the Event found at the API server, written by an earlier process
        bool queued = false;
        Clock::time_point last_seen{};
    };
    using Records = std::map<Event, Record>;
    using Subject = std::pair<std::string, ObjectName>;
    enum Queue : size_t { kWarnings, kNormals, kRepeats, kQueues };

    // The request in progress, or waiting for a retry.
    struct Post {
        enum class Step : uint8_t {
            Create,
            Find,    // the Event exists: PATCH only its time; the response has the count
            Repeat,  // PATCH count and time
        };
        Records::iterator record;
        Step step = Step::Create;
        unsigned tries = 0;
        uint64_t count = 0;  // as sent
    };
    struct Answer {
        int status = 0;
        std::optional<std::chrono::seconds> retry_after;
        std::string body;  // only the beginning, for the error text
        std::optional<TransportError> error;
        bool complete = false;
    };

    void on_head(const ResponseHead& head) override;
    void on_body(std::string_view bytes) override;
    void on_end(const std::optional<TransportError>& error) override;

    void accept(Event event, Clock::time_point now, WallTime wall);
    void enqueue(Records::iterator record);
    void make_room();
    void sweep(Clock::time_point now);
    void start_next(Clock::time_point now);
    void send(const ObjectIdentity& identity);
    void process_response(Clock::time_point now);
    // Takes over the Event that was found: its count is in the response.
    void adopt();
    void succeed(bool is_news);
    void try_again(Clock::time_point now);
    // Ends the request in progress. The next Event with this content is posted as new, unless an earlier post
    // succeeded.
    void give_up(uint64_t EventsStatus::* counter);
    void forbid(Clock::time_point now);
    [[nodiscard]] size_t waiting() const;

    Transport& transport_;
    WriteLimiter& limiter_;
    const Identify identify_;
    const std::function<void()> wake_;

    mutable std::mutex mutex_;
    std::vector<Event> inbox_;    // guarded by mutex_
    uint64_t inbox_dropped_ = 0;  // guarded by mutex_
    EventsStatus published_;      // guarded by mutex_

    // Source thread only.
    EventsStatus counts_;
    Records records_;
    std::map<Subject, RateLimit> talkers_;
    std::array<std::deque<Records::iterator>, kQueues> queues_;
    std::optional<Post> post_;
    std::optional<Transport::RequestId> request_;
    Answer answer_;
    Backoff backoff_;
    Clock::time_point not_before_{};  // earliest time of the next request
    std::optional<Clock::time_point> forbidden_until_;
    bool said_forbidden_ = false;
    Clock::time_point swept_at_{};
};

}  // namespace penstock::kube
