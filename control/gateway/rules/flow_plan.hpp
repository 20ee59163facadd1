// Which rules the gateway wants in each port's NIC: a pure function of what workers are given (Services, SNAT addresses, the blocklist), of
// what the port can do, and of what it has. Who carries the plan out is flow_follower.hpp; ADR 0022 tells why each kind is as it is.
//
//   kind            match                                   action          only where
//   vip-isolate     all that is ours, by destination        spread          the operator asked, and the kernel shares the port
//   snat-to-queue   SNAT address, protocol, port & mask     queue of owner  no predictable RSS covers it; a power of two of workers
//   source-drop     source on the blocklist                 drop, count     not isolated: the kernel's share is not ours to drop
//                   range denied by a Service, its          drop, count     TCP, and only SYNs: a range that is denied ends no flow
//                   frontend, SYN                                           that is open (SRC-005)
//   vip-mark        frontend                                mark            the operator asked
//
// A port's budget is shared out in this order, the blocklist before denied ranges. Isolation takes what it needs, because the rest of its
// port would be lost without; the others save work and take what is left. Within each, rules that are there stay, so that a list which
// grows moves nobody, then newcomers come in the order of rules (shortest prefixes first: they hold the most).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "drivers/flow/flow_rule.hpp"
#include "drivers/port/capabilities.hpp"

namespace penstock::gateway {

// A port that was asked what rules it takes.
struct FlowPort {
    NicPortId id;
    std::optional<nat::ReplyHash> reply_hash;  // where its RSS brings replies home already
    drivers::FlowSupport support;
    bool is_isolated = false;  // it was started so; why not stands in support.vip_isolate
};

struct FlowLimits {
    unsigned workers = 1;
    unsigned budget = 256;  // rules on one port; 0: no rules
    bool isolate = false;
    bool mark = false;
};

// The parts of a snapshot that rules follow from. Cheap to copy, cheap to compare.
struct FlowConfig {
    std::shared_ptr<const lb::ServiceTable> services;
    std::shared_ptr<const route::RouteTable> routes;
    std::shared_ptr<const nat::SnatConfig> snat;
    std::shared_ptr<const route::PrefixSet> blocked;  // null: none

    static FlowConfig of(const config::Snapshot& snapshot) {
        return {snapshot.services, snapshot.routes, snapshot.snat, snapshot.blocked_sources};
    }
    bool operator==(const FlowConfig&) const = default;
};

// Why a kind, or a part of it, is not asked of a port.
struct FlowNote {
    drivers::FlowKind kind = drivers::FlowKind::SourceDrop;
    std::string reason;
    bool operator==(const FlowNote&) const = default;
};

struct PortFlowPlan {
    std::vector<drivers::FlowRule> rules;  // in the order in which they are to be made
    std::vector<FlowNote> notes;
};

// Which frontends may be marked, by mark from 1 on: what is `marked` and still there keeps its number, gaps and the end are filled with the
// first others, `most` in all. One list for all ports, because packets of one frontend may arrive by any.
[[nodiscard]] std::vector<lb::FrontendTuple> assign_marks(const lb::ServiceTable& services,
                                                          std::vector<lb::FrontendTuple> marked, size_t most);

// `present`: the rules that the port has now. `marked`: what assign_marks() says.
[[nodiscard]] PortFlowPlan plan_flows(const FlowLimits& limits, const FlowConfig& config,
                                      std::span<const FlowPort> ports, const FlowPort& port,
                                      const std::set<drivers::FlowRule>& present,
                                      const std::vector<lb::FrontendTuple>& marked = {});

// A rule that drops may stay as long as software would drop the same packets. False for one whose source is blocked no more, or whose
// frontend is gone or denies the range no more. True for rules that do not drop.
[[nodiscard]] bool may_stay(const drivers::FlowRule& rule, const FlowConfig& config);

}  // namespace penstock::gateway
