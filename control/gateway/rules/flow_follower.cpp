// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/rules/flow_follower.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

using drivers::FlowRule;

// A plan examines every frontend. Ten plans per second are fast enough for rules that only save work, and are
// cheap.
constexpr auto kPlanPeriod = std::chrono::milliseconds(100);

std::set<FlowRule> rules_of(const drivers::PortFlows& flows) {
    std::set<FlowRule> rules;
    for (const auto& [rule, installed] : flows.installed()) {
        rules.insert(rules.end(), rule);
    }
    return rules;
}

std::string port_text(const FlowPort& port) {
    return "port " + std::to_string(port.id.value);
}

}  // namespace

FlowFollower::FlowFollower(const FlowLimits& limits, std::vector<Port> ports) : limits_(limits) {
    for (Port& port : ports) {
        facts_.push_back(port.facts);
        ports_.emplace_back().port = std::move(port);
    }
}

FlowFollower::~FlowFollower() {
    stop();
}

void FlowFollower::start() {
    thread_ = std::thread([this] { run(); });
}

void FlowFollower::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
    const std::lock_guard lock(mutex_);
    for (PortState& state : ports_) {
        if (const auto cleared = state.port.flows->clear(); !cleared) {
            log::get("drivers").error("{}: rules stay in the NIC: {}", port_text(state.port.facts),
                                      cleared.error().what);
        }
        state.plan = {};
        state.wanted.clear();
        state.to_remove.clear();
        state.to_add.clear();
    }
}

void FlowFollower::before_publish(config::Snapshot& next) {
    FlowConfig config = FlowConfig::of(next);
    const std::lock_guard publication(publication_);
    const std::lock_guard lock(mutex_);
    if (!marked_.empty()) {
        next.marked = std::make_shared<const lb::MarkedFrontends>(*next.services, marked_);
    }
    if (!limits_.isolate) {
        config.routes = nullptr;  // neighbours change often, and no other rule depends on routes
    }
    if (config == config_) {
        return;
    }
    config_ = std::move(config);
    is_stale_ = true;
    for (PortState& state : ports_) {
        for (const FlowRule& rule : rules_of(*state.port.flows)) {
            if (!may_stay(rule, config_)) {
                remove(state, rule);
            }
        }
    }
    changed_.notify_one();
}

void FlowFollower::port_is_gone(NicPortId port) {
    const std::lock_guard lock(mutex_);
    for (PortState& state : ports_) {
        if (state.port.facts.id == port) {
            state.is_gone = true;
            state.port.flows->forget();
            state.plan = {};
            state.wanted.clear();
            state.to_remove.clear();
            state.to_add.clear();
            state.refused.clear();
        }
    }
}

std::vector<FlowView> FlowFollower::list() const {
    struct Seen {
        NicPortId port;
        PortFlowPlan plan;
        std::set<FlowRule> installed;
        std::map<FlowRule, std::string> refused;
    };
    std::vector<Seen> seen;
    {
        const auto lock = lock_behind_publications();
        for (const PortState& state : ports_) {
            seen.push_back({state.port.facts.id, state.plan, rules_of(*state.port.flows), state.refused});
        }
    }
    std::vector<FlowView> views;
    for (size_t i = 0; i < seen.size(); ++i) {
        const Seen& port = seen[i];
        const auto add = [&](const FlowRule& rule, FlowView::State is, std::string reason) {
            views.push_back({port.port, rule.kind, rule.match.to_string(), rule.action.to_string(), is,
                             std::move(reason),
                             is == FlowView::State::Installed ? hits_of(i, rule) : std::nullopt});
        };
        std::set<FlowRule> unwanted = port.installed;
        for (const FlowRule& rule : port.plan.rules) {
            if (unwanted.erase(rule) > 0) {
                add(rule, FlowView::State::Installed, "");
            } else if (const auto refusal = port.refused.find(rule); refusal != port.refused.end()) {
                add(rule, FlowView::State::Refused, refusal->second);
            } else {
                add(rule, FlowView::State::NotUsed, "to be added");
            }
        }
        for (const FlowRule& rule : unwanted) {
            const auto refusal = port.refused.find(rule);
            add(rule, FlowView::State::Installed,
                refusal == port.refused.end() ? "to be removed" : "cannot be removed: " + refusal->second);
        }
        for (const FlowNote& note : port.plan.notes) {
            views.push_back(
                {port.port, note.kind, "", "", FlowView::State::NotUsed, note.reason, std::nullopt});
        }
    }
    return views;
}

// A mutex is usually acquired by a running thread, such as the one that just released it. A loop of short
// locks would therefore starve a sleeping thread.
std::unique_lock<std::mutex> FlowFollower::lock_behind_publications() const {
    const std::lock_guard pass(publication_);
    return std::unique_lock(mutex_);
}

// Calls the driver. The rule may have been removed by then.
std::optional<drivers::FlowHits> FlowFollower::hits_of(size_t port, const FlowRule& rule) const {
    const auto lock = lock_behind_publications();
    return ports_[port].port.flows->hits(rule);
}

void FlowFollower::run() {
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || is_stale_; });
        }
        while (work()) {
            const std::lock_guard lock(mutex_);
            if (stopping_) {
                return;
            }
        }
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, kPlanPeriod, [this] { return stopping_; })) {
            return;
        }
    }
}

bool FlowFollower::work() {
    replan();
    for (unsigned calls = 0; calls < kRulesPerStep; ++calls) {
        // Release the lock between two driver calls: some take a millisecond, and a publication may be
        // waiting.
        const auto lock = lock_behind_publications();
        if (stopping_ ||
            std::ranges::none_of(ports_, [this](PortState& state) { return change_one(state); })) {
            return false;
        }
    }
    return true;
}

void FlowFollower::replan() {
    FlowConfig config;
    std::vector<std::set<FlowRule>> present;
    {
        const std::lock_guard lock(mutex_);
        if (!is_stale_ || config_.services == nullptr) {
            return;
        }
        is_stale_ = false;
        config = config_;
        for (const PortState& state : ports_) {
            present.push_back(rules_of(*state.port.flows));
        }
    }
    const bool marks = limits_.mark && std::ranges::any_of(facts_, [](const FlowPort& port) {
                           return port.support.vip_mark.validates;
                       });
    // Written only by this thread.
    std::vector<lb::FrontendTuple> marked =
        marks ? assign_marks(*config.services, marked_, limits_.budget) : marked_;
    std::vector<PortFlowPlan> plans;
    for (size_t i = 0; i < facts_.size(); ++i) {
        plans.push_back(plan_flows(limits_, config, facts_, facts_[i], present[i], marked));
    }
    // Workers first: an unknown mark costs them a look-up, as a mark with another meaning would.
    bool has_changed = false;
    {
        const std::lock_guard lock(mutex_);
        has_changed = marked_ != marked;
        marked_ = std::move(marked);
    }
    if (has_changed && marks_listener_) {
        marks_listener_();
    }
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < ports_.size(); ++i) {
        PortState& state = ports_[i];
        if (state.is_gone) {
            continue;
        }
        state.plan = std::move(plans[i]);
        state.wanted = {state.plan.rules.begin(), state.plan.rules.end()};
        std::erase_if(state.refused, [&](const auto& entry) { return !state.wanted.contains(entry.first); });
        std::erase_if(state.lost, [&](const FlowRule& rule) { return !state.wanted.contains(rule); });
        state.to_remove.clear();
        for (const auto& [rule, how] : state.port.flows->installed()) {
            if (!state.wanted.contains(rule)) {
                state.to_remove.push_back(rule);
            }
        }
        state.to_add.clear();
        for (const FlowRule& rule : state.plan.rules) {
            if (!state.port.flows->installed().contains(rule) && !state.refused.contains(rule)) {
                state.to_add.push_back(rule);
            }
        }
    }
}

bool FlowFollower::change_one(PortState& state) {
    const auto& installed = state.port.flows->installed();
    while (!state.to_remove.empty()) {
        const FlowRule rule = state.to_remove.front();
        state.to_remove.pop_front();
        if (installed.contains(rule)) {
            remove(state, rule);
            return true;
        }
    }
    while (!state.to_add.empty()) {
        const FlowRule rule = state.to_add.front();
        state.to_add.pop_front();
        // The plan may be older than the configuration. A drop rule must match the current one.
        if (!installed.contains(rule) && may_stay(rule, config_)) {
            add(state, rule);
            return true;
        }
    }
    return false;
}

void FlowFollower::remove(PortState& state, const FlowRule& rule) {
    if (const auto removed = state.port.flows->remove(rule); !removed) {
        log::get("drivers").error("{}: the rule \"{}: {}\" cannot be removed: {}",
                                  port_text(state.port.facts), rule.match.to_string(),
                                  rule.action.to_string(), removed.error().what);
        state.refused.insert_or_assign(rule, removed.error().what);
        return;
    }
    // A refused rule may fit now.
    for (const auto& [refused, why] : state.refused) {
        if (state.wanted.contains(refused)) {
            state.to_add.push_back(refused);
        }
    }
    state.refused.clear();
}

void FlowFollower::add(PortState& state, const FlowRule& rule) {
    const auto added = state.port.flows->add(rule);
    if (added) {
        state.lost.erase(rule);
        return;
    }
    log::get("drivers").debug("{}: the rule \"{}: {}\" was refused: {}", port_text(state.port.facts),
                              rule.match.to_string(), rule.action.to_string(), added.error().what);
    state.refused.insert_or_assign(rule, added.error().what);
    if (rule.kind == drivers::FlowKind::VipIsolate) {
        leave_isolation(state, rule);
    }
}

// The kernel receives the packets that the refused rule would have delivered to the gateway. Without
// isolation all packets arrive at the gateway again, if the driver can leave isolation. If it cannot, each
// further refused rule is as serious as the first one, and its refusal may be the one after which the driver
// can leave.
void FlowFollower::leave_isolation(PortState& state, const FlowRule& rule) {
    if (!state.port.facts.is_isolated) {
        return;
    }
    auto& logger = log::get("drivers");
    if (const auto left = state.port.flows->remove(FlowRule::isolation()); !left) {
        if (state.lost.insert(rule).second) {  // rules are tried again whenever another one was removed
            logger.error(
                "{}: packets \"{}\" stay with the kernel: the rule was refused ({}), and leaving isolation "
                "failed ({})",
                port_text(state.port.facts), rule.match.to_string(), state.refused.at(rule),
                left.error().what);
        }
        return;
    }
    state.port.facts.is_isolated = false;
    state.lost.clear();
    logger.warn("{}: isolation is over, because the rule \"{}\" was refused: {}", port_text(state.port.facts),
                rule.match.to_string(), state.refused.at(rule));
    const auto facts = std::ranges::find(facts_, state.port.facts.id, &FlowPort::id);
    facts->is_isolated = false;
    facts->support.vip_isolate = {
        false, "left, because a rule was refused: " + rule.match.to_string() + ": " + state.refused.at(rule)};
    is_stale_ = true;
}

}  // namespace penstock::gateway
