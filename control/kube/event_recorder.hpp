// Tells the cluster's users what we found: Events about their objects (EVT-001, EVT-002). Any thread offers; the source thread posts, one
// request at a time, as fast as the write limiter lets it. Telling is worth less than serving: offering never waits, what cannot be told
// is dropped and counted, and a server that forbids Events is left in peace (a read-only installation works, RBAC-001).
//
//     offer() -> inbox -> [too much about one object?] -> warnings | news | repeats -> POST, or PATCH of the Event that says the same
//
// An Event's name follows from what it says, so a restart finds the Events that an earlier process wrote: POST is answered by 409, and the
// count goes on from what the API server has.
//
// The machine has no clock: advance() is called with the time, after each round of the source's loop and at next_wake().
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
#include "control/kube/event_text.hpp"
#include "control/kube/events_status.hpp"
#include "control/kube/rate_limit.hpp"
#include "control/kube/transport.hpp"
#include "control/kube/write_limiter.hpp"

namespace penstock::kube {

// The same again within this time raises the count of the Event that is there.
inline constexpr std::chrono::minutes kEventRepeats{10};
// Of one object: so many at once, then one each interval.
inline constexpr unsigned kEventsPerObject = 25;
inline constexpr std::chrono::minutes kEventsPerObjectInterval{5};
// Ten thousand Services that each have something wrong can wait; with messages of 300 bytes they take 5 MB.
inline constexpr size_t kEventsWaitingMax = 16'384;
inline constexpr unsigned kEventTriesMax = 3;
inline constexpr std::chrono::seconds kEventTimeout{10};
inline constexpr std::chrono::minutes kEventsForbiddenPause{10};

class EventRecorder final : private ResponseHandler {
 public:
    using Clock = std::chrono::steady_clock;
    using WallTime = std::chrono::system_clock::time_point;
    // Of an object as the store has it now, nullopt where it is gone. Called on the source thread, from inside advance().
    using Identify =
        std::function<std::optional<ObjectIdentity>(const std::string& kind, const ObjectName& object)>;

    // `wake` tells the source's loop to call advance(); any thread. `random` spreads tries.
    EventRecorder(Transport& transport, WriteLimiter& limiter, Identify identify, RandomSource random,
                  std::function<void()> wake);
    ~EventRecorder() override;
    EventRecorder(const EventRecorder&) = delete;
    EventRecorder& operator=(const EventRecorder&) = delete;

    // Any thread, at once.
    void offer(Event event);
    // Any thread.
    [[nodiscard]] EventsStatus status() const;

    // Source thread.
    void advance(Clock::time_point now, WallTime wall);
    // When advance() has something to do even if nothing happens; nullopt: never.
    [[nodiscard]] std::optional<Clock::time_point> next_wake() const;

 private:
    // What an Event says; those that say the same are one.
    struct Record {
        std::string name;  // at the API server; "" before it is there
        EventTimes times{.count = 0, .first = {}, .last = {}};
        uint64_t told = 0;  // of times.count
        uint64_t before =
            0;  // the Event's count when it was found at the API server, as an earlier process left it
        bool queued = false;
        Clock::time_point last_seen{};
    };
    using Records = std::map<Event, Record>;
    using Subject = std::pair<std::string, ObjectName>;
    enum Queue : size_t { kWarnings, kNormals, kRepeats, kQueues };

    // The request under way, or to be made again.
    struct Post {
        enum class Step : uint8_t {
            Create,
            Find,    // it is there already: a PATCH of its time alone, whose answer has the count
            Repeat,  // a PATCH of count and time
        };
        Records::iterator record;
        Step step = Step::Create;
        unsigned tries = 0;
        uint64_t count = 0;  // as sent
    };
    struct Answer {
        int status = 0;
        std::optional<std::chrono::seconds> retry_after;
        std::string body;  // as much as tells why
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
    void settle(Clock::time_point now);
    // The Event was found: its count is in the answer.
    void adopt();
    void succeed(bool is_news);
    void try_again(Clock::time_point now);
    // Ends what is under way; whatever it says next is new to the API server, unless it was told of it before.
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

    // The source thread's.
    EventsStatus counts_;
    Records records_;
    std::map<Subject, RateLimit> talkers_;
    std::array<std::deque<Records::iterator>, kQueues> queues_;
    std::optional<Post> post_;
    std::optional<Transport::RequestId> request_;
    Answer answer_;
    Backoff backoff_;
    Clock::time_point not_before_{};  // of the next request
    std::optional<Clock::time_point> forbidden_until_;
    bool said_forbidden_ = false;
    Clock::time_point swept_at_{};
};

}  // namespace penstock::kube
