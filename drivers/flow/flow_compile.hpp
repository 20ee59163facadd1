// SPDX-License-Identifier: Apache-2.0
// Compiles a rule to rte_flow: attributes, pattern and actions, with everything that they point to. Pure: no
// port is queried, and a test compares the bytes.
//
//   ETH [type] / IPV4|IPV6 [source, destination, protocol] / TCP|UDP [destination port, flags] / END
//   [COUNT] / QUEUE | RSS | DROP | MARK and RSS or PASSTHRU / END
//
// An item that matches anything has neither spec nor mask, which every PMD accepts as "any". Some PMDs refuse
// masks of zeros.
#pragma once

#include <rte_flow.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "dataplane/base/result.hpp"
#include "drivers/flow/flow_rule.hpp"

namespace penstock::drivers {

// The properties of a port that a rule depends on.
struct FlowPortFacts {
    uint16_t rx_queues = 1;
    uint64_t rss_types = 0;  // RTE_ETH_RSS_*, as the port was configured; 0: no RSS
    std::vector<uint8_t>
        rss_key;  // the port's own, so that a rule spreads as the port does; empty: the driver's default
    // MARK does not select a queue. Some drivers require RSS beside it (mlx5), others require that the search
    // continues (PASSTHRU: ice, i40e).
    bool mark_spreads = false;
};

class CompiledFlow {
 public:
    // InvalidArgument: the rule contradicts itself, with the place. Unsupported: rte_flow cannot express the
    // rule.
    static Result<std::unique_ptr<CompiledFlow>> compile(const FlowRule& rule, const FlowPortFacts& port);
    CompiledFlow(const CompiledFlow&) = delete;  // it points into itself
    CompiledFlow& operator=(const CompiledFlow&) = delete;

    [[nodiscard]] const rte_flow_attr* attributes() const noexcept { return &attributes_; }
    [[nodiscard]] const rte_flow_item* pattern() const noexcept { return items_.data(); }
    [[nodiscard]] const rte_flow_action* actions() const noexcept { return actions_.data(); }

 private:
    CompiledFlow() = default;
    void add(rte_flow_item_type type, const void* spec, const void* mask) noexcept {
        items_[item_count_++] = {type, spec, nullptr, mask};
    }
    void add(rte_flow_action_type type, const void* configuration) noexcept {
        actions_[action_count_++] = {type, configuration};
    }
    void add_ethernet(const FlowMatch& match) noexcept;
    void add_ip(const FlowMatch& match) noexcept;
    void add_l4(const FlowMatch& match) noexcept;
    Status add_actions(const FlowRule& rule, const FlowPortFacts& port);
    void add_spread(const FlowPortFacts& port);

    // Every byte is 0, including the padding and reserved bits that an initialisation may leave unset: PMDs
    // may compare bytes.
    template <typename Item>
    struct Pair {
        Pair() noexcept {
            std::memset(&spec, 0, sizeof spec);
            std::memset(&mask, 0, sizeof mask);
        }
        Item spec, mask;
    };
    rte_flow_attr attributes_{};
    // ETH, IP, L4, END, and COUNT, MARK, RSS, END. The value-initialised rest is END, which is 0 in both
    // enums.
    std::array<rte_flow_item, 4> items_{};
    std::array<rte_flow_action, 4> actions_{};
    size_t item_count_ = 0, action_count_ = 0;
    Pair<rte_flow_item_eth> ethernet_;
    Pair<rte_flow_item_ipv4> ipv4_;
    Pair<rte_flow_item_ipv6> ipv6_;
    Pair<rte_flow_item_tcp> tcp_;
    Pair<rte_flow_item_udp> udp_;
    rte_flow_action_count count_{};
    rte_flow_action_queue queue_{};
    rte_flow_action_mark mark_{};
    rte_flow_action_rss rss_{};
    std::vector<uint16_t> rss_queues_;
    std::vector<uint8_t> rss_key_;
};
static_assert(RTE_FLOW_ITEM_TYPE_END == 0 && RTE_FLOW_ACTION_TYPE_END == 0);

}  // namespace penstock::drivers
