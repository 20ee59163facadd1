// SPDX-License-Identifier: Apache-2.0
// Applies the plan of flow_plan.hpp port by port, by difference: first rules that are no longer wanted are
// removed, then missing rules are added.
//
//   reconciler --before_publish(next)--> removes drops that `next` does not cover --> `next` is published
//                     `-> [configuration, newest only] --> thread: plan -> difference -> a few rules
//                                                                                        at a time
//
// Removal of a drop rule cannot wait: a Service may need the packets as soon as it is published. It is done
// on the reconciler's thread, and there are never more drop rules than a port's budget. The follower's thread
// does all other work. It holds the lock for one driver call at a time, so that the reconciler waits for at
// most one rule. A rule that the driver refuses is not tried again until another rule of that port was
// removed (there may be room then).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/rules/flow_plan.hpp"
#include "drivers/flow/flow_install.hpp"

namespace penstock::gateway {

// A rule, or a kind of rule that a port does not get, as shown by `get flows`.
struct FlowView {
    enum class State : uint8_t { Installed, Refused, NotUsed };
    NicPortId port;
    drivers::FlowKind kind = drivers::FlowKind::SourceDrop;
    std::string match, action;  // "" where State is NotUsed
    State state = State::NotUsed;
    std::string reason;
    std::optional<drivers::FlowHits> hits;
};

class FlowFollower {
 public:
    struct Port {
        FlowPort facts;
        std::unique_ptr<drivers::PortFlows> flows;
    };
    FlowFollower(const FlowLimits& limits, std::vector<Port> ports);
    ~FlowFollower();  // stop()
    FlowFollower(const FlowFollower&) = delete;
    FlowFollower& operator=(const FlowFollower&) = delete;

    void start();
    // Destroys every rule, then leaves isolation. Rules that the driver does not remove are logged.
    // Idempotent.
    void stop();

    // Call when `next` is about to be published. Sets the meaning of marks in `next`. Reconciler's thread, or
    // before start().
    void before_publish(config::Snapshot& next);
    // Called on the follower's thread when marks no longer match the newest snapshot. Set before start().
    void set_marks_listener(std::function<void()> listener) { marks_listener_ = std::move(listener); }

    // The port's device is gone and is about to be closed: the driver is not called any more. Any thread.
    void port_is_gone(NicPortId port);

    // Any thread. Reads hits from the NIC, rule by rule: a publication waits for at most one of these calls.
    [[nodiscard]] std::vector<FlowView> list() const;

    // One step of the thread, of at most kRulesPerStep calls. Public for tests without the thread. False:
    // nothing was left to do.
    static constexpr unsigned kRulesPerStep = 32;
    bool work();

 private:
    struct PortState {
        Port port;
        PortFlowPlan plan;
        std::set<drivers::FlowRule> wanted;  // of the plan
        // The remaining difference. It may be outdated: each rule is checked again before it is applied.
        std::deque<drivers::FlowRule> to_remove, to_add;
        std::map<drivers::FlowRule, std::string> refused;  // with the driver's error
        std::set<drivers::FlowRule> lost;  // of isolation: refused and logged, and the port is still isolated
        bool is_gone = false;
    };

    [[nodiscard]] std::unique_lock<std::mutex> lock_behind_publications() const;
    [[nodiscard]] std::optional<drivers::FlowHits> hits_of(size_t port, const drivers::FlowRule& rule) const;
    void run();
    void replan();
    // Call with the lock held. False: the port has all wanted rules.
    [[nodiscard]] bool change_one(PortState& state);
    void remove(PortState& state, const drivers::FlowRule& rule);
    void add(PortState& state, const drivers::FlowRule& rule);
    void leave_isolation(PortState& state, const drivers::FlowRule& rule);

    const FlowLimits limits_;
    std::vector<FlowPort> facts_;  // of all ports, for the plan

    // Taken before mutex_. Held while publishing, and locked briefly before each driver call in a loop.
    mutable std::mutex publication_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<PortState> ports_;
    FlowConfig config_;
    std::vector<lb::FrontendTuple> marked_;
    std::function<void()> marks_listener_;
    bool is_stale_ = false;  // plans are older than config_ or than a port's rules
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace penstock::gateway
