// The flow table of a software NIC: rte_flow as a PMD serves it, without the port around it. Patterns are compiled into field matches when
// a rule is made, as hardware tables hold them; errors name what they refuse the way PMDs do (rte_flow_error type, cause and words).
//
// Taken are ingress rules of group 0 whose items go up the layers (ETH, VLAN, IPV4 or IPV6, TCP or UDP; leading ones may be left out), with
// spec and mask, and one fate: QUEUE, DROP, RSS over queues, or PASSTHRU. MARK and COUNT may stand beside it. Ranges (`last`) are refused.
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
    std::vector<uint8_t> value, mask;  // of one length; value has no bit that mask has not
    bool operator==(const FieldMatch&) const = default;
};

struct FlowPattern {
    std::optional<uint16_t> ether_type;  // that a later item asks for
    std::optional<bool>
        has_vlan;  // a VLAN item asks for a tag; a pattern that goes from ETH to IP right away, for none
    std::optional<uint16_t> vlan_tci_mask;  // of FieldMatch's kind, but where the tag is
    uint16_t vlan_tci = 0;
    std::optional<uint8_t> l4_protocol;  // of an item TCP or UDP, which matches no fragment
    std::vector<FieldMatch> fields;
    bool operator==(const FlowPattern&) const = default;
    [[nodiscard]] bool matches(const FrameFields& frame) const;
};

struct FlowFate {
    enum class Kind : uint8_t { Queue, Drop, Rss, Passthru } kind = Kind::Drop;
    std::vector<uint16_t> queues;  // one, or RSS's in their order
    uint64_t rss_types = 0;        // 0: the port's
    std::vector<uint8_t> rss_key;  // empty: the port's
    std::optional<uint32_t> mark;
    bool counts = false;
};

}  // namespace penstock::test

// What rte_flow_create gives its caller; the driver's own.
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

    // 0, or what rte_flow_error_set returns.
    int validate(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                 const rte_flow_action* actions, rte_flow_error* error) const;
    rte_flow* create(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                     const rte_flow_action* actions, rte_flow_error* error);
    int destroy(rte_flow* flow, rte_flow_error* error);
    int query(rte_flow* flow, const rte_flow_action* action, void* data, rte_flow_error* error);
    void flush() { rules_.clear(); }
    [[nodiscard]] size_t size() const { return rules_.size(); }

    // What happens to a frame: the fate of the first rule that matches, lower priority number first, then the older rule. PASSTHRU leaves
    // its mark and goes on. Counts hits. Empty: no rule decides; `mark` may be set all the same.
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
    std::list<std::unique_ptr<rte_flow>> rules_;  // in the order in which they are asked
};

}  // namespace penstock::test
