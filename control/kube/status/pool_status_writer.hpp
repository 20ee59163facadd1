// SPDX-License-Identifier: Apache-2.0
// Writes the status of AddressPools, as charts/penstock/crds/addresspools.yaml defines it. Requests, retries
// and leadership are those of PatchQueue. A machine without I/O, clock and thread. Source thread only, except
// counts().
//
// The status in the store is not decoded: each write of this process would otherwise be a change of the pool
// for the allocator. So a status is compared with the last one that this process wrote, and is written once
// after this process became leader. A change of the status by another writer stays until the next write.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/decode.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/objects.hpp"
#include "control/kube/status/patch_queue.hpp"
#include "control/kube/status/write_status.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

// Each allocation changes the counts. Counts alone are written at this interval, so that a series of
// allocations leaves the rate of status writes to the Services.
inline constexpr std::chrono::seconds kPoolCountsInterval{5};

// Of one family; values above 2^63 - 1 are written as this number.
struct AddressCounts {
    uint64_t total = 0;
    uint64_t used = 0;
    uint64_t free = 0;
    bool operator==(const AddressCounts&) const = default;
};

struct PoolStatus {
    AddressCounts ipv4;
    AddressCounts ipv6;
    // All conditions of the pool; reasons are not empty.
    std::vector<Condition> conditions;
    std::optional<int64_t> observed_generation;  // metadata.generation that the conditions are about
    bool operator==(const PoolStatus&) const = default;
};

// When the status of each condition began, by type: lastTransitionTime.
struct ConditionSince {
    std::string status;
    WallTime since;
};
using ConditionTimes = std::map<std::string, ConditionSince>;

// Adapts `times` to `conditions` at `now`: a condition whose status is the same keeps its time.
void update_times(ConditionTimes& times, const std::vector<Condition>& conditions, WallTime now);

// application/merge-patch+json; `times` has each condition.
[[nodiscard]] std::string pool_status_body(const PoolStatus& status, std::string_view resource_version,
                                           const ConditionTimes& times);

// "/apis/penstock.io/v1alpha1/addresspools/NAME/status"
[[nodiscard]] std::string pool_status_target(const ObjectName& name);

class PoolStatusWriter final : private PatchQueue::Owner {
 public:
    using Time = PatchQueue::Time;
    struct Calls {
        // Newest version in the store, nullopt if the pool is unknown.
        std::function<std::optional<PoolVersion>(const std::string& name)> read;
        // Leadership by a clock that is read in this call. Called before each write.
        std::function<bool()> may_write;
    };

    // `transport` and `limiter` outlive this.
    PoolStatusWriter(Transport& transport, WriteLimiter& limiter, Calls calls, RandomSource random);

    // The pool shall have this status. Also for followers: what is set is written once this process leads.
    void set(const std::string& name, PoolStatus desired);
    // The pool was deleted: nothing is written to it any more.
    void forget(const std::string& name);
    // The store has a new version of the pool. Without effect for others than those set.
    void object_changed(const std::string& name);

    // Forgets every pool and cancels the writes in progress; see StatusWriter.
    void reset();

    // See PatchQueue.
    void finish() { queue_.finish(); }
    [[nodiscard]] bool has_writes() const noexcept { return queue_.has_writes(); }
    [[nodiscard]] bool is_settled(Time now) const noexcept { return queue_.is_settled(now); }

    void advance(Time now, WallTime wall) { queue_.advance(now, wall); }
    // nullopt if only a response, a new call or leadership leads to work.
    [[nodiscard]] std::optional<Time> next_wake() const { return queue_.next_wake(); }

    // Any thread.
    [[nodiscard]] WriteCounts counts() const { return queue_.counts(); }

 private:
    struct Sent {
        PoolStatus status;
        std::string stored_version;  // in the store when it was sent
        std::string base_version;    // sent as precondition
        std::string uid;
    };
    struct Written {
        PoolStatus status;
        WrittenVersions versions;
        std::string after_version;  // from the response; "" if it was not readable
        std::string uid;            // another pool may have the same name later
        Time at{};
    };
    struct Record {
        PoolStatus desired;
        ConditionTimes times;  // of `desired`, once it was sent
        std::optional<Sent> sent;
        std::optional<Written> written;
    };

    // nullopt: the pool is unknown, or has no version that a write could depend on.
    [[nodiscard]] std::optional<PoolVersion> read(const ObjectName& name) const;
    std::optional<std::string> version_of(const ObjectName& name) const override;
    PatchQueue::Decision decide(const ObjectName& name, Time now, WallTime wall) override;
    void on_sent(const ObjectName& /*name*/) override {}
    void on_written(const ObjectName& name, const OneResponse& response, Time now) override;
    void on_rejected(const ObjectName& name, const std::string& why) override;
    void on_leadership_lost() override;

    const Calls calls_;
    Decoder decoder_;
    std::map<ObjectName, Record> records_;
    PatchQueue queue_;
};

}  // namespace penstock::kube
