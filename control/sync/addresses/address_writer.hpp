// SPDX-License-Identifier: Apache-2.0
// Gives addresses to the LoadBalancer Services of a cluster while this process is the leader (LB-007,
// LEASE-001, STATUS-001). A machine without I/O and clock over kube::Transport; source thread, except
// status() and the board.
//
//   Following --elected--> Refreshing --listed anew--> Fencing --written--> Assigning --lost--> Following
//
// A new leader lists the Services anew, so that it has every address that a former leader gave away. A
// write of the former leader may still be on its way: its process or the network was frozen. Each such
// write carries the version of its Service. So, before any address is given away, each Service whose status
// does not show all that it requests is written once (condition Allocated, reason Pending). A late write then
// fails by its version, or came before and is seen. Not covered: a late write that moves a Service from one
// address to another because the former leader had other pools
// (docs/adr/0035-leader-election-and-status-writes.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/kube/events/event_text.hpp"
#include "control/kube/lease/leader_elector.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/status/pool_status_writer.hpp"
#include "control/kube/status/status_writer.hpp"
#include "control/sync/addresses/address_assignment.hpp"
#include "control/sync/addresses/address_status.hpp"
#include "control/sync/addresses/programmed_board.hpp"

namespace penstock::sync {

// Longest time of the phase Fencing, so that a Service that cannot be written, or changes all the time, does
// not keep the others from getting addresses: the duration of the Lease and the timeout of a write
// (kStatusTimeout). A write of a former leader that arrives even later is not refused at such a Service.
inline constexpr std::chrono::seconds kFenceMax = kube::kLeaseDuration + kube::kStatusTimeout;

class AddressWriter {
 public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;
    using WallTime = kube::WallTime;

    struct Settings {
        AddressAssignment::Settings assignment;
        kube::LeaderElector::Settings election;
    };
    struct Calls {
        // Newest version in the store, nullopt if the object is unknown.
        std::function<std::optional<kube::ServiceVersion>(const kube::ObjectName&)> service;
        std::function<std::optional<kube::PoolVersion>(const std::string&)> pool;
        // Lists the Services anew, at their most recent version.
        std::function<void()> relist;
        // False after relist() until that list is complete.
        std::function<bool()> is_relisted;
        std::function<Time()> clock;  // read directly before each write
        std::function<void(kube::Event)> report;
        std::function<void()> wake;  // makes the source's loop call advance(); any thread
        // The board has the gateways of other processes, as far as they report.
        std::function<bool()> has_other_gateways = [] { return true; };
    };

    AddressWriter(Settings settings, kube::Transport& transport, kube::WriteLimiter& limiter, Calls calls,
                  const kube::RandomSource& random);

    // Changes as the source reports them, in order, before advance() of the same round.
    void note(const kube::Changes& changes);
    void advance(Time now, WallTime wall);
    [[nodiscard]] std::optional<Time> next_wake() const;
    [[nodiscard]] std::vector<kube::LogLine> take_log();

    // Clean shutdown: no write is started any more. The Lease is released (LEASE-003) once every write was
    // answered. A write without an answer may be executed later: then the Lease is left to expire, so that
    // its successor begins as after a crash. Call advance() as before until is_released().
    void release();
    [[nodiscard]] bool is_released() const { return leaves_lease_ || elector_.is_released(); }

    [[nodiscard]] bool is_leader(Time now) const { return elector_.is_leader(now); }
    [[nodiscard]] ProgrammedBoard& board() noexcept { return board_; }
    // Any thread.
    [[nodiscard]] AddressStatus status() const;

 private:
    enum class Phase : uint8_t { Following, Refreshing, Fencing, Assigning };

    void follow_election(Time now);
    void follow_release(Time now, WallTime wall);
    [[nodiscard]] bool may_write() const;
    void fence_everything();
    void fence_changes();
    void fence(const kube::ObjectName& service);
    void assign_everything();
    void assign_changes();
    void assign(const kube::ObjectName& service);
    void set(const kube::ObjectName& service, kube::ServiceStatus status);
    void clear(const kube::ObjectName& service);
    void report(const kube::ObjectName& service, const ipam::Allocation& allocation);
    void write_pools();
    void publish();

    const Settings settings_;
    const Calls calls_;
    AddressAssignment assignment_;
    ProgrammedBoard board_;
    kube::LeaderElector elector_;
    kube::StatusWriter services_;
    kube::PoolStatusWriter pools_;
    kube::LogLines log_;
    Phase phase_ = Phase::Following;
    uint64_t term_ = 0;  // of the election; the current phase belongs to it
    bool is_releasing_ = false;
    bool leaves_lease_ = false;  // release() has ended, and the Lease expires
    bool sources_changed_ = false;
    Time fence_until_{};                  // end of Fencing, whatever is not written by then
    std::set<kube::ObjectName> noted_;    // Services that note() reported since the last advance()
    std::set<kube::ObjectName> written_;  // Services with a desired status in services_
    bool view_is_stale_ = true;           // the allocation changed since publish()
    // Last reported refusals, so that each is reported once while it lasts.
    std::map<kube::ObjectName, std::string> reported_;
    std::string pools_refused_;

    mutable std::mutex mutex_;
    AddressStatus status_;  // guarded by mutex_
};

}  // namespace penstock::sync
