// SPDX-License-Identifier: Apache-2.0
// The desired rules in each port's NIC: a pure function of the workers' configuration
// (Services, SNAT addresses, the blocklist), of the port's capabilities, and of its present rules.
// flow_follower.hpp applies the plan. ADR 0022 gives the reasons for each kind.
//
//   kind            match                                 action          condition
//   vip-isolate     all packets for the gateway, by       spread          requested by the operator, and the
//                   destination                                           kernel shares the port
//   snat-to-queue   SNAT address, protocol, port & mask   queue of owner  not covered by predictable RSS; the
//                                                                         number of workers is a power of two
//   source-drop     source on the blocklist               drop, count     not isolated: the kernel's packets
//                                                                         must not be dropped
//                   range denied by a Service, its        drop, count     only TCP SYNs: a denied range ends
//                   frontend, SYN                                         no open flow (SRC-005)
//   vip-mark        frontend                              mark            requested by the operator
//
// A port's budget is assigned in this order, the blocklist before denied ranges. Isolation takes all that it
// needs, because the port would lose packets otherwise. The other kinds save work and take the remaining
// budget. Within each kind, present rules stay, so that a growing list displaces none. New rules follow in
// the order of rules (shortest prefixes first, because they cover the most).
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

// A port and the rules that it supports.
struct FlowPort {
    NicPortId id;
    std::optional<nat::ReplyHash> reply_hash;  // set if its RSS already delivers replies to their owners
    drivers::FlowSupport support;
    bool is_isolated = false;  // it was started in isolation; if not, the reason is in support.vip_isolate
};

struct FlowLimits {
    unsigned workers = 1;
    unsigned budget = 256;  // rules on one port; 0: no rules
    bool isolate = false;
    bool mark = false;
};

// The parts of a snapshot that rules depend on. Cheap to copy and to compare.
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

// The reason why a kind, or a part of it, is not used on a port.
struct FlowNote {
    drivers::FlowKind kind = drivers::FlowKind::SourceDrop;
    std::string reason;
    bool operator==(const FlowNote&) const = default;
};

struct PortFlowPlan {
    std::vector<drivers::FlowRule> rules;  // in the order of installation
    std::vector<FlowNote> notes;
};

// The frontends that may be marked, by mark from 1 on. Frontends in `marked` that still exist keep their
// number. Gaps and the end are filled with the first other frontends, `most` in all. One list for all ports,
// because packets of a frontend may arrive by any port.
[[nodiscard]] std::vector<lb::FrontendTuple> assign_marks(const lb::ServiceTable& services,
                                                          std::vector<lb::FrontendTuple> marked, size_t most);

// `present`: the current rules of the port. `marked`: the result of assign_marks().
[[nodiscard]] PortFlowPlan plan_flows(const FlowLimits& limits, const FlowConfig& config,
                                      std::span<const FlowPort> ports, const FlowPort& port,
                                      const std::set<drivers::FlowRule>& present,
                                      const std::vector<lb::FrontendTuple>& marked = {});

// A drop rule may stay as long as software would drop the same packets. False if its source is no longer
// blocked, or if its frontend is gone or no longer denies the range. True for rules that do not drop.
[[nodiscard]] bool may_stay(const drivers::FlowRule& rule, const FlowConfig& config);

}  // namespace penstock::gateway
