// SPDX-License-Identifier: Apache-2.0
// Writes the status of Services (STATUS-001 to STATUS-005, LB-013). Holds the desired status of each Service
// and writes until the API server has it, also after losing leadership and gaining it again. A machine
// without I/O, clock and thread. Source thread only, except counts().
//
//   set(), clear(), object_changed() -> PatchQueue -> compare with the store -> PATCH
//
// Each Service is in the queue at most once, so the queue is bounded by the number of Services, and only the
// latest desired status is written. After a write the response is the current status until the watch reports
// it. A status that another writer reverts is written again after kStatusFightInterval, and reported. Fields
// that the server drops from a write, because its version does not have them, are not written again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/decode.hpp"
#include "control/kube/events/event_text.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/status/patch_queue.hpp"
#include "control/kube/status/service_status.hpp"
#include "control/kube/status/write_status.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

class StatusWriter final : private PatchQueue::Owner {
 public:
    using Time = PatchQueue::Time;
    struct Calls {
        // Newest version in the store, nullopt if the Service is unknown.
        std::function<std::optional<ServiceVersion>(const ObjectName&)> read;
        // Leadership by a clock that is read in this call (LeaderElector::is_leader). Called before each
        // write.
        std::function<bool()> may_write;
        // Events of the leader (EVT-003): IPAllocated, IPReleased, StatusRejected,
        // StatusConflict. Without a reporter.
        std::function<void(Event)> report;
    };

    // `transport` and `limiter` outlive this.
    StatusWriter(Transport& transport, WriteLimiter& limiter, Calls calls, RandomSource random);
    StatusWriter(const StatusWriter&) = delete;
    StatusWriter& operator=(const StatusWriter&) = delete;

    // The Service shall have this status. Cheap if it is the desired one already. Also for followers: what is
    // set is written once this process leads.
    void set(const ObjectName& name, ServiceStatus desired);
    // Removes what Penstock wrote (LB-013), then forgets the Service.
    void clear(const ObjectName& name);
    // The store has a new version of the Service, or it was deleted. No effect for Services that were not
    // set.
    void object_changed(const ObjectName& name);

    // Forgets every Service and cancels the writes in progress. For a new term of leadership: what was
    // decided in an earlier term must not be written.
    void reset();

    // See PatchQueue.
    void finish() { queue_.finish(); }
    [[nodiscard]] bool has_writes() const noexcept { return queue_.has_writes(); }
    [[nodiscard]] bool is_settled(Time now) const noexcept { return queue_.is_settled(now); }

    void advance(Time now, WallTime wall);
    // nullopt if only a response, a new call or leadership leads to work.
    [[nodiscard]] std::optional<Time> next_wake() const { return queue_.next_wake(); }

    // Any thread. `foreign`: see WriteStatus.
    [[nodiscard]] WriteCounts counts() const { return queue_.counts(); }
    [[nodiscard]] uint64_t foreign() const;

 private:
    // A write, for its Events and for the comparison afterwards.
    struct Sent {
        ServiceStatus before;
        ServiceStatus desired;
        std::string stored_version;  // in the store when it was sent
        std::string base_version;    // that it was computed from
        bool is_conflict = false;    // another writer had changed the same status
        bool is_cancelled = false;   // leadership ended
    };
    // The last write that succeeded.
    struct Written {
        ServiceStatus desired;
        WrittenVersions versions;
        std::optional<ServiceVersion> after;  // from the response; nullopt: not readable
        Time at{};
        bool is_superseded = false;  // leadership ended: another process may have written since
    };
    struct Record {
        ServiceStatus desired;
        bool is_clearing = false;  // forgotten once nothing is left to remove
        bool is_foreign = false;
        // Without a response so far, or with one that was lost: the Events are not reported yet.
        std::optional<Sent> sent;
        std::optional<Sent> decided;  // to be sent
        std::optional<Written> written;
    };

    std::optional<std::string> version_of(const ObjectName& name) const override;
    PatchQueue::Decision decide(const ObjectName& name, Time now, WallTime wall) override;
    void on_sent(const ObjectName& name) override;
    void on_written(const ObjectName& name, const OneResponse& response, Time now) override;
    void on_rejected(const ObjectName& name, const std::string& why) override;
    void on_leadership_lost() override;

    // nullopt: the Service is unknown, or has no version that a write could depend on.
    [[nodiscard]] std::optional<ServiceVersion> read(const ObjectName& name) const;
    // The desired status has been written already.
    [[nodiscard]] static bool is_repeated(const Record& record) {
        return record.written && !record.written->is_superseded && record.written->desired == record.desired;
    }
    PatchQueue::Decision decide_write(Record& record, const ServiceVersion& stored,
                                      const ServiceVersion& current, std::string body, Time now);
    PatchQueue::Decision confirm(const ObjectName& name, Record& record, const ServiceVersion& current);
    PatchQueue::Decision forget(const ObjectName& name);
    void set_foreign(Record& record, bool is_foreign);
    void report_changes(const ObjectName& name, const Sent& sent);
    void report(const ObjectName& name, Event::Type type, std::string reason, std::string message);

    const Calls calls_;
    Decoder decoder_;
    std::map<ObjectName, Record> records_;
    uint64_t foreign_ = 0;
    PatchQueue queue_;

    mutable std::mutex mutex_;
    uint64_t published_foreign_ = 0;  // guarded by mutex_
};

}  // namespace penstock::kube
