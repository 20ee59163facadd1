// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/rules/flow_plan.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "dataplane/nat/reply_owner.hpp"
#include "drivers/flow/flow_install.hpp"

namespace penstock::gateway {
namespace {

using drivers::FlowKind;
using drivers::FlowMatch;
using drivers::FlowRule;
using drivers::FlowVerb;

uint8_t ip_protocol(Protocol protocol) noexcept {
    return protocol == Protocol::Tcp ? drivers::kIpTcp : drivers::kIpUdp;
}

FlowRule denial(const IpAddr& frontend, L4Port port, const Prefix& source, bool counted) {
    return {FlowKind::SourceDrop,
            {.family = source.family(),
             .source = source,
             .destination = frontend,
             .ip_protocol = drivers::kIpTcp,
             .destination_port = port,
             .destination_port_mask = 0xffff,
             .opens_tcp = true},
            {FlowVerb::Drop, 0},
            counted};
}

// Short prefixes first: one rule covers many addresses.
std::tuple<uint8_t, const Prefix&> width_of(const Prefix& prefix) noexcept {
    return {prefix.length(), prefix};
}

// The first `most` prefixes by width.
std::vector<Prefix> widest_of(std::span<const Prefix> prefixes, size_t most) {
    std::vector<Prefix> widest(std::min(most, prefixes.size()));
    std::ranges::partial_sort_copy(prefixes, widest, {}, width_of, width_of);
    return widest;
}

// `ranges` as in SourceFilter::denied(), sorted and disjoint: only the last one that starts at or before the
// prefix can contain it.
bool is_within(std::span<const Prefix> ranges, const Prefix& prefix) noexcept {
    const auto behind = std::ranges::upper_bound(ranges, prefix.address(), {}, &Prefix::address);
    if (behind == ranges.begin()) {
        return false;
    }
    const Prefix& range = *std::prev(behind);
    return range.length() <= prefix.length() && range.contains(prefix.address());
}

// Selects the best `room` of any number of candidates, in memory for `room`: present rules first, then the
// widest.
class Choice {
 public:
    Choice(size_t room, const std::set<FlowRule>& present) : room_(room), present_(present) {}

    // Adds to the number of candidates, whether they are offered or not.
    void expect(size_t candidates) { candidates_ += candidates; }
    // False: the rule is not among the best, and no new rule after it in order would be.
    bool offer(const FlowRule& rule) {
        Candidate candidate{!present_.contains(rule), rule};
        if (chosen_.size() < room_) {
            chosen_.insert(std::move(candidate));
            return true;
        }
        if (room_ == 0 || !(candidate < *chosen_.rbegin())) {
            return false;
        }
        if (chosen_.insert(std::move(candidate)).second) {
            chosen_.erase(std::prev(chosen_.end()));
        }
        return true;
    }
    [[nodiscard]] size_t left_out() const noexcept {
        return chosen_.size() < room_ ? 0 : candidates_ - chosen_.size();
    }
    void append_to(std::vector<FlowRule>& rules) const {
        for (const Candidate& candidate : chosen_) {
            rules.push_back(candidate.rule);
        }
    }

 private:
    struct Candidate {
        bool is_new;
        FlowRule rule;
        bool operator<(const Candidate& other) const noexcept { return key() < other.key(); }

     private:
        [[nodiscard]] std::tuple<bool, uint8_t, const FlowRule&> key() const noexcept {
            return {is_new, rule.match.source ? rule.match.source->length() : uint8_t{0}, rule};
        }
    };
    const size_t room_;
    const std::set<FlowRule>& present_;
    std::set<Candidate> chosen_;
    size_t candidates_ = 0;
};

// The hash by which a SNAT address's ports are chosen (docs/architecture.md, "Ownership of replies"); null:
// by blocks.
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
    Planner(const FlowLimits& limits, const FlowConfig& config, std::span<const FlowPort> ports,
            const FlowPort& port, const std::set<FlowRule>& present,
            const std::vector<lb::FrontendTuple>& marked)
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
    [[nodiscard]] size_t room() const noexcept {
        return limits_.budget - std::min<size_t>(limits_.budget, plan_.rules.size());
    }
    [[nodiscard]] Choice choice() const { return {room(), present_}; }
    void take(FlowKind kind, const Choice& choice, const char* instead) {
        choice.append_to(plan_.rules);
        if (choice.left_out() > 0) {
            note(kind, std::to_string(choice.left_out()) + " more do not fit the " +
                           std::to_string(limits_.budget) + " rules of the port (--flow-rules): " + instead);
        }
    }

    void isolate() {
        if (!limits_.isolate) {
            return note(FlowKind::VipIsolate, "not enabled (--vip-isolate)");
        }
        if (!port_.is_isolated) {
            return note(FlowKind::VipIsolate, port_.support.vip_isolate.reason);
        }
        std::set<FlowRule> rules;
        const auto spread = [&](const FlowMatch& match) {
            rules.insert({FlowKind::VipIsolate, match, {FlowVerb::Spread, 0}, false});
        };
        const auto to_address = [&](const IpAddr& address) {
            spread({.family = address.family(), .destination = address});
        };
        // Packets that the twin needs for neighbour discovery. ICMPv6 also delivers errors about flows; IPv4
        // errors arrive by their destination address.
        rules.insert(
            {FlowKind::VipIsolate, {.ether_type = drivers::kEtherTypeArp}, {FlowVerb::ToQueue, 0}, false});
        rules.insert({FlowKind::VipIsolate,
                      {.family = IpFamily::V6, .ip_protocol = drivers::kIpIcmpv6},
                      {FlowVerb::ToQueue, 0},
                      false});
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
                    // Their replies are addressed to clients, which can have any address.
                    for (const lb::Backend& backend : backends.usable) {
                        spread({.family = backend.address.family(), .source = Prefix::host(backend.address)});
                    }
                }
            }
        });
        // Before isolation, so that no packet for the gateway is lost.
        plan_.rules.assign(rules.begin(), rules.end());
        plan_.rules.push_back(FlowRule::isolation());
    }

    void bring_replies() {
        if (!port_.support.snat_to_queue.validates) {
            return note(FlowKind::SnatToQueue, port_.support.snat_to_queue.reason);
        }
        const auto mask = drivers::snat_port_mask(limits_.workers);
        if (!mask || limits_.workers == 1) {
            return note(FlowKind::SnatToQueue, "no mask distinguishes the SNAT ports of the workers");
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
                choice.expect(limits_.workers);
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
            note(FlowKind::SnatToQueue, "predictable RSS delivers replies to their owners");
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

    // Before the ranges of Services, even those with present rules: a blocklist rule saves every packet of
    // its source, a range rule only one packet per flow.
    void drop_blocked() {
        if (config_.blocked == nullptr) {
            return;
        }
        if (port_.is_isolated) {
            // Without a destination the rules would also match the kernel's packets, which software does not
            // drop.
            return note(FlowKind::SourceDrop,
                        "blocked sources: rules would also drop their packets to the kernel (--vip-isolate)");
        }
        Choice choice = this->choice();
        choice.expect(config_.blocked->prefixes().size());
        for (const Prefix& prefix : config_.blocked->prefixes()) {
            choice.offer({FlowKind::SourceDrop,
                          {.family = prefix.family(), .source = prefix},
                          {FlowVerb::Drop, 0},
                          port_.support.counts});
        }
        take(FlowKind::SourceDrop, choice, "software drops the packets of these blocked sources");
    }

    // A Service may deny thousands of ranges on thousands of frontends.
    void drop_denied() {
        Choice choice = this->choice();
        // Present rules first, so that the first new rule that is not selected ends its frontend's list.
        for (const FlowRule& rule : present_) {
            if (is_denied_now(rule)) {
                choice.offer(rule);
            }
        }
        // Frontends of a Service share a filter.
        std::map<std::pair<const lb::SourceFilter*, IpFamily>, std::vector<Prefix>> widest;
        bool has_others = false;
        config_.services->for_each_row([&](const lb::FrontendRow& row) {
            const IpFamily family = row.address.family();
            if (row.filter == nullptr || row.filter->denied(family).empty()) {
                return;
            }
            if (row.protocol != Protocol::Tcp) {
                has_others = true;
                return;
            }
            choice.expect(row.filter->denied(family).size());
            const auto [entry, is_first] = widest.try_emplace({row.filter, family});
            if (is_first) {
                entry->second = widest_of(row.filter->denied(family), room());
            }
            for (const Prefix& range : entry->second) {
                if (!choice.offer(denial(row.address, row.port, range, port_.support.counts))) {
                    break;
                }
            }
        });
        if (has_others) {
            note(FlowKind::SourceDrop,
                 "ranges denied to UDP frontends: a datagram does not show whether it opens a flow, and "
                 "open flows continue");
        }
        take(FlowKind::SourceDrop, choice, "software enforces these denied ranges");
    }

    // Whether this plan would offer the rule as well.
    [[nodiscard]] bool is_denied_now(const FlowRule& rule) const {
        const FlowMatch& match = rule.match;
        if (rule.kind != FlowKind::SourceDrop || !match.destination) {
            return false;
        }
        const lb::FrontendRow* row =
            config_.services->find(*match.destination, match.destination_port, Protocol::Tcp);
        return row != nullptr && row->filter != nullptr &&
               std::ranges::binary_search(row->filter->denied(match.destination->family()), *match.source) &&
               rule ==
                   denial(*match.destination, match.destination_port, *match.source, port_.support.counts);
    }

    void mark_frontends() {
        if (!limits_.mark) {
            return note(FlowKind::VipMark, "not enabled (--vip-mark)");
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
            choice.expect(1);
            choice.offer({FlowKind::VipMark,
                          {.family = tuple.address.family(),
                           .destination = tuple.address,
                           .ip_protocol = ip_protocol(tuple.protocol),
                           .destination_port = tuple.port,
                           .destination_port_mask = 0xffff},
                          {FlowVerb::Mark, mark},
                          false});
        }
        take(FlowKind::VipMark, choice, "packets to these frontends use a look-up");
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

std::vector<lb::FrontendTuple> assign_marks(const lb::ServiceTable& services,
                                            std::vector<lb::FrontendTuple> marked, size_t most) {
    const std::set<lb::FrontendTuple> known(marked.begin(), marked.end());
    std::set<lb::FrontendTuple> others;  // the first ones, at most as many as there are marks
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
    // An unfilled gap stays: its number must not become another frontend's.
    while (!marked.empty() &&
           services.find(marked.back().address, marked.back().port, marked.back().protocol) == nullptr) {
        marked.pop_back();
    }
    return marked;
}

PortFlowPlan plan_flows(const FlowLimits& limits, const FlowConfig& config, std::span<const FlowPort> ports,
                        const FlowPort& port, const std::set<FlowRule>& present,
                        const std::vector<lb::FrontendTuple>& marked) {
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
    const lb::FrontendRow* row =
        config.services->find(*match.destination, match.destination_port, Protocol::Tcp);
    return row != nullptr && row->filter != nullptr &&
           is_within(row->filter->denied(match.source->family()), *match.source);
}

}  // namespace penstock::gateway
