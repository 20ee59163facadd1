// Carries out what flow_plan.hpp wants, port by port, by difference: rules that are no longer wanted go, then those that are missing come.
//
//   reconciler --before_publish(next)--> drops that `next` does not cover are gone from the NIC --> next is published
//                     `-> [configuration, newest only] --> a thread: plan -> difference -> a few rules at a time
//
// Removing a drop is the one thing that cannot wait: a Service may need the packets as soon as it is published. It happens on the
// reconciler's thread, and there are never more of them than a port's budget. All else is the thread's, which holds the lock for one call
// of the driver at a time, so that the reconciler waits for one rule at most. What the driver refuses is remembered and not tried again
// until a rule of that port has gone (there may be room then).
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

// A rule, or a kind of rule that a port does not get, as `get flows` shows it.
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
    // Destroys every rule, then leaves isolation. What a driver does not give back is logged. Idempotent.
    void stop();

    // `next` is about to become what workers read; it is told what marks mean. Reconciler's thread, or before start().
    void before_publish(config::Snapshot& next);
    // Called on the follower's thread when marks mean something else than the newest snapshot says. Before start().
    void set_marks_listener(std::function<void()> listener) { marks_listener_ = std::move(listener); }

    // Its device has gone away, and is about to be closed: nothing is asked of the driver from now on. Any thread.
    void port_is_gone(NicPortId port);

    // Any thread. Asks the NIC for hits, rule by rule: a publication waits for one of them.
    [[nodiscard]] std::vector<FlowView> list() const;

    // What the thread does, for tests without it: one step of kRulesPerStep calls at most. False: nothing was left to do.
    static constexpr unsigned kRulesPerStep = 32;
    bool work();

 private:
    struct PortState {
        Port port;
        PortFlowPlan plan;
        std::set<drivers::FlowRule> wanted;  // of the plan
        // What is left of the difference. It may have been overtaken: each is looked at again before it is done.
        std::deque<drivers::FlowRule> to_remove, to_add;
        std::map<drivers::FlowRule, std::string> refused;  // and what the driver said
        std::set<drivers::FlowRule>
            lost;  // of isolation: refused, told, and the port is isolated all the same
        bool is_gone = false;
    };

    [[nodiscard]] std::unique_lock<std::mutex> lock_behind_publications() const;
    [[nodiscard]] std::optional<drivers::FlowHits> hits_of(size_t port, const drivers::FlowRule& rule) const;
    void run();
    void replan();
    // With the lock held. False: the port has all that it shall have.
    [[nodiscard]] bool change_one(PortState& state);
    void remove(PortState& state, const drivers::FlowRule& rule);
    void add(PortState& state, const drivers::FlowRule& rule);
    void leave_isolation(PortState& state, const drivers::FlowRule& rule);

    const FlowLimits limits_;
    std::vector<FlowPort> facts_;  // of all ports, for the plan

    mutable std::mutex
        publication_;  // taken before mutex_; held by who publishes, passed by those who call the driver again and again
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<PortState> ports_;
    FlowConfig config_;
    std::vector<lb::FrontendTuple> marked_;
    std::function<void()> marks_listener_;
    bool is_stale_ = false;  // plans are older than config_, or than what a port has
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace penstock::gateway
