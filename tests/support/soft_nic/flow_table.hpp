// SPDX-License-Identifier: Apache-2.0
// The flow table of a software NIC: rte_flow as provided by a PMD, without the port. Patterns are compiled
// into field matches when a rule is created, as in the tables of hardware. Errors name the refused part as
// PMDs do (rte_flow_error type, cause and message).
//
// Supported are ingress rules of group 0 whose items ascend the layers (ETH, VLAN, IPV4 or IPV6, TCP or UDP;
// leading ones may be omitted), with spec and mask, and one fate: QUEUE, DROP, RSS over queues, or PASSTHRU,
// optionally with MARK and COUNT. Ranges (`last`) are refused.
#pragma once

#include <rte_flow.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tests/support/soft_nic/device_arguments.hpp"
#include "tests/support/soft_nic/frame_fields.hpp"

namespace penstock::test {

// A field of the frame under a mask.
struct FieldMatch {
    enum class Base : uint8_t { Frame, L3, L4 } base = Base::Frame;
    uint16_t offset = 0;
    std::vector<uint8_t> value, mask;  // of equal length; value & ~mask is 0
    bool operator==(const FieldMatch&) const = default;
};

struct FlowPattern {
    std::optional<uint16_t> ether_type;  // required by a later item
    std::optional<bool>
        // A VLAN item requires a tag; a pattern from ETH directly to IP requires that there is none.
        has_vlan;
    std::optional<uint16_t> vlan_tci_mask;  // as FieldMatch, at the position of the tag
    uint16_t vlan_tci = 0;
    std::optional<uint8_t> l4_protocol;  // required by a TCP or UDP item, which matches no fragment
    std::vector<FieldMatch> fields;
    bool operator==(const FlowPattern&) const = default;
    [[nodiscard]] bool matches(const FrameFields& frame) const;
};

struct FlowFate {
    enum class Kind : uint8_t { Queue, Drop, Rss, Passthru } kind = Kind::Drop;
    std::vector<uint16_t> queues;  // one queue, or those of RSS in order
    uint64_t rss_types = 0;        // 0: the port's types
    std::vector<uint8_t> rss_key;  // empty: the port's key
    std::optional<uint32_t> mark;
    bool counts = false;
};

}  // namespace penstock::test

// The handle returned by rte_flow_create; owned by the driver.
struct rte_flow {
    uint32_t priority = 0;
    penstock::test::FlowPattern pattern;
    penstock::test::FlowFate fate;
    uint64_t hits = 0;
    uint64_t bytes = 0;
};

namespace penstock::test {

class FlowTable {
 public:
    explicit FlowTable(const DeviceArguments& limits) : limits_(limits) {}

    // Returns 0, or the result of rte_flow_error_set.
    int validate(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                 const rte_flow_action* actions, rte_flow_error* error) const;
    rte_flow* create(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                     const rte_flow_action* actions, rte_flow_error* error);
    int destroy(rte_flow* flow, rte_flow_error* error);
    int query(rte_flow* flow, const rte_flow_action* action, void* data, rte_flow_error* error);
    void flush() { rules_.clear(); }
    [[nodiscard]] size_t size() const { return rules_.size(); }

    // The fate of a frame: that of the first matching rule, by priority (lower number first), then by age
    // (older first). PASSTHRU sets its mark and continues. Counts hits. Empty: no rule decides; `mark` may be
    // set nevertheless.
    const FlowFate* decide(const FrameFields& frame, std::optional<uint32_t>& mark);

 private:
    struct Compiled {
        FlowPattern pattern;
        FlowFate fate;
    };
    int compile(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                const rte_flow_action* actions, Compiled& to, rte_flow_error* error) const;
    int compile_items(const rte_flow_item* items, FlowPattern& to, rte_flow_error* error) const;
    int compile_actions(uint16_t queues, const rte_flow_action* actions, FlowFate& to,
                        rte_flow_error* error) const;
    int compile_rss(uint16_t queues, const rte_flow_action& action, FlowFate& to,
                    rte_flow_error* error) const;

    const DeviceArguments& limits_;
    std::list<std::unique_ptr<rte_flow>> rules_;  // in the order of evaluation
};

}  // namespace penstock::test
