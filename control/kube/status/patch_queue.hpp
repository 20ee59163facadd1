// SPDX-License-Identifier: Apache-2.0
// Queue of objects of one kind whose status is to be written, and the requests in progress (STATUS-002).
// Common to Services and AddressPools: order, responses, retries, leadership. Its owner decides what to
// write.
// A machine without I/O, clock and thread. Source thread only, except counts().
//
//   enqueue() -> queue, in order -> Owner::decide() -> PATCH, several at a time -> response -> queue again
//
// Writes that the owner calls minor wait for the others, apart from one in kMajorWritesInARow: a Service gets
// its address before other Services get their conditions.
//
//   2xx                          the object is queued again, and the owner confirms it
//   409                          queued again after a backoff of the object
//   404                          nothing until the store has another version of the object
//   422 and other refusals       likewise, or until the desired status changes; reported by the owner
//   403                          all objects wait for kStatusForbiddenPause; one log line
//   401, 429, 5xx, no response   all objects wait: backoff, and at least Retry-After
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/backoff.hpp"
#include "control/kube/decode.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/lease/lease.hpp"
#include "control/kube/status/one_response.hpp"
#include "control/kube/status/write_status.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

// Writes in progress at a time, of one kind of object: at least four, at higher rates as many as start in an
// eighth of a second. A response may take that long without lowering the rate.
inline constexpr size_t kStatusWritesAtOnceMin = 4;
[[nodiscard]] constexpr size_t status_writes_at_once(uint32_t per_s) {
    return std::max<size_t>(kStatusWritesAtOnceMin, (per_s + 7) / 8);
}
// With the renewal deadline of 10 s this stays below the 15 s after which another process takes over.
inline constexpr std::chrono::seconds kStatusTimeout{5};
inline constexpr std::chrono::minutes kStatusForbiddenPause{1};
// Failures are counted; one of them is logged in this time.
inline constexpr std::chrono::minutes kStatusFailureLogInterval{5};
inline constexpr uint32_t kMajorWritesInARow = 15;
// STATUS-004: shortest time between equal writes to one object.
inline constexpr std::chrono::seconds kStatusFightInterval{10};

// Versions of one object, as far as they are known from own writes. The store is behind until the watch has
// delivered the last write.
class WrittenVersions {
 public:
    // A write was computed from `base` while the store had `stored`, and produced `after` ("" if unknown).
    void add(const std::string& stored, const std::string& base, std::string after);
    // The store has a version from before the last write.
    [[nodiscard]] bool is_behind(const std::string& stored) const;

 private:
    // Forgetting one costs a 409.
    static constexpr size_t kKeptMax = 16;
    std::vector<std::string> before_;
    std::string newest_;
};

class PatchQueue {
 public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;

    struct Kind {
        std::string name;      // "Services", in log lines
        std::string resource;  // "services/status", the right that a 403 lacks
        std::string content_type;
        std::string (*target)(const ObjectName& name) = nullptr;
    };

    struct Decision {
        enum class Action : uint8_t {
            Done,    // nothing to do until enqueue()
            Forget,  // likewise, and the owner forgot the object
            Wait,    // decide again at `until`
            Send,    // PATCH with `body`
        };
        Action action = Action::Done;
        Time until{};
        std::string body;
        bool is_minor = false;  // Send: after the other writes
    };

    // Called from inside advance().
    class Owner {
     public:
        // resourceVersion in the store; nullopt if the object is unknown.
        [[nodiscard]] virtual std::optional<std::string> version_of(const ObjectName& name) const = 0;
        // Compares the object with its desired status. No write to it is in progress. Send: on_sent()
        // follows, or another decide(), or leadership has ended.
        virtual Decision decide(const ObjectName& name, Time now, WallTime wall) = 0;
        // The write of the last decision is started.
        virtual void on_sent(const ObjectName& name) = 0;
        // The write of the last decision succeeded.
        virtual void on_written(const ObjectName& name, const OneResponse& response, Time now) = 0;
        // The server refused it finally. `why`: the server's text, without secrets.
        virtual void on_rejected(const ObjectName& name, const std::string& why) = 0;
        // Another process may write from now on.
        virtual void on_leadership_lost() = 0;

     protected:
        ~Owner() = default;
    };

    // `transport`, `limiter` and `owner` outlive this. `may_write`: leadership by a clock that is read in the
    // call.
    PatchQueue(Kind kind, Transport& transport, WriteLimiter& limiter, std::function<bool()> may_write,
               RandomSource random, Owner& owner);
    ~PatchQueue();
    PatchQueue(const PatchQueue&) = delete;
    PatchQueue& operator=(const PatchQueue&) = delete;

    // The owner shall decide on the object. An object is in the queue at most once.
    void enqueue(const ObjectName& name);
    // As enqueue(), for another desired status: a rejection of the former one does not apply to it.
    void enqueue_changed(const ObjectName& name);
    // Removes the object. False: a write to it is in progress, and it is kept.
    bool forget(const ObjectName& name);

    // Removes all objects and cancels their writes. Not from inside a call of the owner.
    void reset();

    // No write is started any more. Those in progress end as usual.
    void finish() { is_finishing_ = true; }
    [[nodiscard]] bool has_writes() const noexcept { return !writes_.empty(); }
    // Every write so far was answered, or is too old to matter: kLeaseDuration after its start, another
    // process may lead in any case. A cancelled write has no answer: the server may execute it later.
    [[nodiscard]] bool is_settled(Time now) const noexcept {
        return writes_.empty() && now >= unsettled_until_;
    }

    void advance(Time now, WallTime wall);
    // nullopt: only a response, enqueue() or a change of leadership leads to work.
    [[nodiscard]] std::optional<Time> next_wake() const;

    // Any thread; as of the last advance().
    [[nodiscard]] WriteCounts counts() const;

 private:
    struct Entry {
        bool is_queued = false;
        bool is_minor = false;  // queued in minor_
        bool is_writing = false;
        bool is_outdated = false;  // the desired status changed during the write
        bool is_rejected = false;  // refused_version: by the content, not because the object is gone
        std::optional<Time> delayed_until;
        std::optional<std::string> refused_version;  // no attempt while the store has this version
        Time not_before = Time::min();
        std::unique_ptr<Backoff> backoff;  // after conflicts and failures
    };
    struct Write {
        ObjectName name;
        std::string stored_version;  // in the store when it was sent
        Time sent_at{};
        Transport::RequestId id{};
        OneResponse response;
    };

    void push(const ObjectName& name, Entry& entry);
    void delay(const ObjectName& name, Entry& entry, Time until);
    void end_delay(const ObjectName& name, Entry& entry);
    void cancel_writes();
    // Cancels the request, or got no answer to it.
    void leave_unsettled(const Write& write);
    void start_writes(Time now, WallTime wall);
    // The next object in the queue; nullopt if there is none.
    std::optional<ObjectName> take_next();
    // False: leadership ended.
    bool process(const ObjectName& name, Entry& entry, Time now, WallTime wall);
    void finish(Write& write, Time now);
    void succeed();
    void fail(const Write& write, Entry& entry, Time now);
    void forbid(Entry& entry, Time now);
    void reject(const Write& write, Entry& entry);
    Time back_off(Entry& entry, Time now);
    void publish();

    const Kind kind_;
    Transport& transport_;
    WriteLimiter& limiter_;
    const size_t at_once_max_;  // writes in progress
    const std::function<bool()> may_write_;
    RandomSource random_;
    Owner& owner_;
    Decoder decoder_;

    std::map<ObjectName, Entry> entries_;
    std::deque<ObjectName> queue_;
    std::deque<ObjectName> minor_;  // each with Entry::is_minor, and names that are not in it any more
    size_t minor_count_ = 0;        // objects in minor_
    uint32_t majors_in_a_row_ = 0;
    bool takes_minor_ = false;  // the object in process() was taken from minor_
    std::set<std::pair<Time, ObjectName>> delayed_;
    std::vector<std::unique_ptr<Write>> writes_;
    bool is_leading_ = false;
    bool is_finishing_ = false;
    Time unsettled_until_ = Time::min();
    Backoff backoff_;  // failures of the server, for all objects
    Time not_before_ = Time::min();
    bool is_forbidden_ = false;
    std::optional<Time> failure_logged_at_;
    WriteCounts counts_;

    mutable std::mutex mutex_;
    WriteCounts published_;  // guarded by mutex_
};

}  // namespace penstock::kube
