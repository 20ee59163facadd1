#include "control/gateway/flow_plan.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "dataplane/nat/reply_owner.hpp"
#include "drivers/flow_install.hpp"

namespace penstock::gateway {
namespace {

using drivers::FlowKind;
using drivers::FlowMatch;
using drivers::FlowRule;
using drivers::FlowVerb;

uint8_t ip_protocol(Protocol protocol) noexcept {
    return protocol == Protocol::Tcp ? drivers::kIpTcp : drivers::kIpUdp;
}

// Short prefixes first: one rule for much.
struct WidestFirst {
    bool operator()(const FlowRule& a, const FlowRule& b) const noexcept { return key(a) < key(b); }

 private:
    static std::tuple<uint8_t, const FlowRule&> key(const FlowRule& rule) noexcept {
        return {rule.match.source ? rule.match.source->length() : uint8_t{0}, rule};
    }
};

// The best `room` of any number of candidates, in memory for `room`.
class Choice {
 public:
    Choice(size_t room, const std::set<FlowRule>& present) : room_(room), present_(present) {}

    void offer(const FlowRule& rule) {
        auto& chosen = present_.contains(rule) ? stay_ : come_;
        if (!chosen.insert(rule).second) {
            return;
        }
        ++offered_;
        if (stay_.size() + come_.size() > room_) {
            auto& longest = come_.empty() ? stay_ : come_;
            longest.erase(std::prev(longest.end()));
        }
    }
    [[nodiscard]] size_t left_out() const noexcept { return offered_ - stay_.size() - come_.size(); }
    void append_to(std::vector<FlowRule>& rules) const {
        rules.insert(rules.end(), stay_.begin(), stay_.end());
        rules.insert(rules.end(), come_.begin(), come_.end());
    }

 private:
    const size_t room_;
    const std::set<FlowRule>& present_;
    std::set<FlowRule, WidestFirst> stay_, come_;
    size_t offered_ = 0;
};

// The hash that a SNAT address's ports are chosen by (docs/architecture.md, "Replies come home"); null: by blocks.
const nat::ReplyHash* hash_for(const nat::SnatAddress& address, std::span<const FlowPort> ports) noexcept {
    for (const FlowPort& port : ports) {
        if (port.reply_hash && (!address.egress.is_set() || address.egress == port.id)) {
            return &*port.reply_hash;
        }
    }
    return nullptr;
}

class Planner {
 public:
    Planner(const FlowLimits& limits, const FlowConfig& config, std::span<const FlowPort> ports, const FlowPort& port,
            const std::set<FlowRule>& present, const std::vector<lb::FrontendTuple>& marked)
        : limits_(limits), config_(config), ports_(ports), port_(port), present_(present), marked_(marked) {}

    PortFlowPlan plan() {
        if (limits_.budget == 0 && !port_.is_isolated) {
            for (const FlowKind kind : drivers::kFlowKinds) {
                note(kind, "rules are switched off (--flow-rules 0)");
            }
            return std::move(plan_);
        }
        isolate();
        bring_replies();
        drop_sources();
        mark_frontends();
        return std::move(plan_);
    }

 private:
    void note(FlowKind kind, std::string reason) { plan_.notes.push_back({kind, std::move(reason)}); }
    [[nodiscard]] size_t room() const noexcept { return limits_.budget - std::min<size_t>(limits_.budget, plan_.rules.size()); }
    [[nodiscard]] Choice choice() const { return {room(), present_}; }
    void take(FlowKind kind, const Choice& choice, const char* instead) {
        choice.append_to(plan_.rules);
        if (choice.left_out() > 0) {
            note(kind, std::to_string(choice.left_out()) + " more do not fit the " + std::to_string(limits_.budget) +
                           " rules of the port (--flow-rules): " + instead);
        }
    }

    void isolate() {
        if (!limits_.isolate) {
            return note(FlowKind::VipIsolate, "not asked for (--vip-isolate)");
        }
        if (!port_.is_isolated) {
            return note(FlowKind::VipIsolate, port_.support.vip_isolate.reason);
        }
        std::set<FlowRule> rules;
        const auto spread = [&](const FlowMatch& match) { rules.insert({FlowKind::VipIsolate, match, {FlowVerb::Spread, 0}, false}); };
        const auto to_address = [&](const IpAddr& address) { spread({.family = address.family(), .destination = address}); };
        // What the twin needs to have neighbours. ICMPv6 brings errors about flows as well; those of IPv4 come with their address.
        rules.insert({FlowKind::VipIsolate, {.ether_type = drivers::kEtherTypeArp}, {FlowVerb::ToQueue, 0}, false});
        rules.insert({FlowKind::VipIsolate, {.family = IpFamily::V6, .ip_protocol = drivers::kIpIcmpv6}, {FlowVerb::ToQueue, 0}, false});
        for (const route::LocalAddress& local : config_.routes->addresses()) {
            if (local.port == port_.id) {
                to_address(local.address);
            }
        }
        for (const nat::SnatAddress& address : config_.snat->addresses) {
            to_address(address.address);
        }
        config_.services->for_each_row([&](const lb::FrontendRow& row) {
            to_address(row.address);
            for (const uint8_t set : {row.set, row.inside_set}) {
                const lb::BackendSet& backends = row.service->sets[set];
                if (backends.source == lb::SourceMode::Keep) {
                    // Their replies are addressed to clients, which is anybody.
                    for (const lb::Backend& backend : backends.usable) {
                        spread({.family = backend.address.family(), .source = Prefix::host(backend.address)});
                    }
                }
            }
        });
        // Before anything of ours would be missed.
        plan_.rules.assign(rules.begin(), rules.end());
        plan_.rules.push_back(FlowRule::isolation());
    }

    void bring_replies() {
        if (!port_.support.snat_to_queue.validates) {
            return note(FlowKind::SnatToQueue, port_.support.snat_to_queue.reason);
        }
        const auto mask = drivers::snat_port_mask(limits_.workers);
        if (!mask || limits_.workers == 1) {
            return note(FlowKind::SnatToQueue, "SNAT ports are told by no mask");
        }
        Choice choice = this->choice();
        bool is_covered = false;
        for (const nat::SnatAddress& address : config_.snat->addresses) {
            if (address.egress.is_set() && address.egress != port_.id) {
                continue;  // its replies come by another port
            }
            const nat::ReplyHash* hash = hash_for(address, ports_);
            for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
                if (hash != nullptr && hash->covers(address.address.family(), protocol)) {
                    is_covered = true;
                    continue;
                }
                for (unsigned worker = 0; worker < limits_.workers; ++worker) {
                    choice.offer({FlowKind::SnatToQueue,
                                  {.family = address.address.family(),
                                   .destination = address.address,
                                   .ip_protocol = ip_protocol(protocol),
                                   .destination_port = static_cast<L4Port>(worker * nat::kPortsPerBlock),
                                   .destination_port_mask = *mask},
                                  {FlowVerb::ToQueue, worker},
                                  false});
                }
            }
        }
        if (is_covered) {
            note(FlowKind::SnatToQueue, "predictable RSS brings replies home");
        }
        take(FlowKind::SnatToQueue, choice, "their replies are handed over");
    }

    void drop_sources() {
        if (!port_.support.source_drop.validates) {
            return note(FlowKind::SourceDrop, port_.support.source_drop.reason);
        }
        drop_blocked();
        drop_denied();
    }

    // Before the ranges of Services, also before those that have rules already: it spares every packet of its sources, a range one a flow.
    void drop_blocked() {
        if (config_.blocked == nullptr) {
            return;
        }
        Choice choice = this->choice();
        for (const Prefix& prefix : config_.blocked->prefixes()) {
            choice.offer({FlowKind::SourceDrop, {.family = prefix.family(), .source = prefix}, {FlowVerb::Drop, 0}, port_.support.counts});
        }
        take(FlowKind::SourceDrop, choice, "software drops the packets of these blocked sources");
    }

    void drop_denied() {
        Choice choice = this->choice();
        bool has_others = false;
        config_.services->for_each_row([&](const lb::FrontendRow& row) {
            if (row.filter == nullptr || row.filter->denied(row.address.family()).empty()) {
                return;
            }
            if (row.protocol != Protocol::Tcp) {
                has_others = true;
                return;
            }
            for (const Prefix& prefix : row.filter->denied(row.address.family())) {
                choice.offer({FlowKind::SourceDrop,
                              {.family = prefix.family(),
                               .source = prefix,
                               .destination = row.address,
                               .ip_protocol = drivers::kIpTcp,
                               .destination_port = row.port,
                               .destination_port_mask = 0xffff,
                               .opens_tcp = true},
                              {FlowVerb::Drop, 0},
                              port_.support.counts});
            }
        });
        if (has_others) {
            note(FlowKind::SourceDrop, "ranges denied to UDP frontends: no datagram tells that it opens a flow, and open flows go on");
        }
        take(FlowKind::SourceDrop, choice, "software drops what these denied ranges send");
    }

    void mark_frontends() {
        if (!limits_.mark) {
            return note(FlowKind::VipMark, "not asked for (--vip-mark)");
        }
        if (!port_.support.vip_mark.validates) {
            return note(FlowKind::VipMark, port_.support.vip_mark.reason);
        }
        Choice choice = this->choice();
        for (uint32_t mark = 1; mark <= marked_.size(); ++mark) {
            const lb::FrontendTuple& tuple = marked_[mark - 1];
            if (config_.services->find(tuple.address, tuple.port, tuple.protocol) == nullptr) {
                continue;  // a gap
            }
            choice.offer({FlowKind::VipMark,
                          {.family = tuple.address.family(),
                           .destination = tuple.address,
                           .ip_protocol = ip_protocol(tuple.protocol),
                           .destination_port = tuple.port,
                           .destination_port_mask = 0xffff},
                          {FlowVerb::Mark, mark},
                          false});
        }
        take(FlowKind::VipMark, choice, "their frontends are looked up");
    }

    const FlowLimits& limits_;
    const FlowConfig& config_;
    const std::span<const FlowPort> ports_;
    const FlowPort& port_;
    const std::set<FlowRule>& present_;
    const std::vector<lb::FrontendTuple>& marked_;
    PortFlowPlan plan_;
};

}  // namespace

std::vector<lb::FrontendTuple> assign_marks(const lb::ServiceTable& services, std::vector<lb::FrontendTuple> marked, size_t most) {
    const std::set<lb::FrontendTuple> known(marked.begin(), marked.end());
    std::set<lb::FrontendTuple> others;  // the first ones, as many as there may be marks
    services.for_each_row([&](const lb::FrontendRow& row) {
        const lb::FrontendTuple tuple{row.address, row.port, row.protocol};
        if (row.protocol == Protocol::Sctp || known.contains(tuple)) {
            return;
        }
        others.insert(tuple);
        if (others.size() > most) {
            others.erase(std::prev(others.end()));
        }
    });
    marked.resize(std::min(marked.size(), most));
    auto next = others.begin();
    for (lb::FrontendTuple& tuple : marked) {
        if (services.find(tuple.address, tuple.port, tuple.protocol) == nullptr && next != others.end()) {
            tuple = *next++;
        }
    }
    while (marked.size() < most && next != others.end()) {
        marked.push_back(*next++);
    }
    // A gap that nobody fills stays one: its number must not be another frontend's.
    while (!marked.empty() && services.find(marked.back().address, marked.back().port, marked.back().protocol) == nullptr) {
        marked.pop_back();
    }
    return marked;
}

PortFlowPlan plan_flows(const FlowLimits& limits, const FlowConfig& config, std::span<const FlowPort> ports, const FlowPort& port,
                        const std::set<FlowRule>& present, const std::vector<lb::FrontendTuple>& marked) {
    return Planner(limits, config, ports, port, present, marked).plan();
}

bool may_stay(const FlowRule& rule, const FlowConfig& config) {
    if (rule.action.verb != FlowVerb::Drop) {
        return true;
    }
    const FlowMatch& match = rule.match;
    if (!match.destination) {
        return config.blocked != nullptr && config.blocked->contains(*match.source);
    }
    const lb::FrontendRow* row = config.services->find(*match.destination, match.destination_port, Protocol::Tcp);
    return row != nullptr && row->filter != nullptr &&
           std::ranges::any_of(row->filter->denied(match.source->family()), [&](const Prefix& denied) {
               return denied.length() <= match.source->length() && denied.contains(match.source->address());
           });
}

}  // namespace penstock::gateway
