// SPDX-License-Identifier: Apache-2.0
#include "tests/support/soft_nic/flow_table.hpp"

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace penstock::test {
namespace {

bool has(uint64_t set, int type) {
    return type >= 0 && type < 64 && (set >> type & 1) != 0;
}

std::span<const uint8_t> bytes_of(const void* at, size_t size) {
    return {static_cast<const uint8_t*>(at), size};
}

// A field that this NIC can match. The item struct and the header have it at the same offset.
struct Field {
    size_t offset, size;
};

// Description of one item: its layer, its fields, and the mask used if none is given (rte_flow.h).
struct ItemKind {
    FieldMatch::Base base;
    size_t header_bytes;  // length of the wire header at the start of the item's struct
    size_t item_bytes;
    std::span<const Field> fields;
    std::span<const Field> masked_by_default;
};
constexpr Field kEthFields[] = {{0, 6}, {6, 6}, {12, 2}};  // destination, source, type
constexpr Field kEthDefault[] = {{0, 6}, {6, 6}};
constexpr Field kIpv4Fields[] = {
    {6, 2}, {9, 1}, {12, 4}, {16, 4}};  // fragment, protocol, source, destination
constexpr Field kIpv4Default[] = {{12, 4}, {16, 4}};
constexpr Field kIpv6Fields[] = {{6, 1}, {8, 16}, {24, 16}};  // protocol, source, destination
constexpr Field kIpv6Default[] = {{8, 16}, {24, 16}};
constexpr Field kPortFields[] = {{0, 2}, {2, 2}};
constexpr Field kTcpFields[] = {{0, 2}, {2, 2}, {13, 1}};  // ports, flags
const ItemKind kEth = {FieldMatch::Base::Frame, 14, sizeof(rte_flow_item_eth), kEthFields, kEthDefault};
const ItemKind kIpv4 = {FieldMatch::Base::L3, 20, sizeof(rte_flow_item_ipv4), kIpv4Fields, kIpv4Default};
const ItemKind kIpv6 = {FieldMatch::Base::L3, 40, sizeof(rte_flow_item_ipv6), kIpv6Fields, kIpv6Default};
const ItemKind kTcp = {FieldMatch::Base::L4, 20, sizeof(rte_flow_item_tcp), kTcpFields, kPortFields};
const ItemKind kUdp = {FieldMatch::Base::L4, 8, sizeof(rte_flow_item_udp), kPortFields, kPortFields};

// The item's mask as bytes of its struct.
std::vector<uint8_t> mask_of(const rte_flow_item& item, const ItemKind& kind) {
    std::vector<uint8_t> mask(kind.item_bytes);
    if (item.mask != nullptr) {
        std::ranges::copy(bytes_of(item.mask, kind.item_bytes), mask.begin());
    } else {
        for (const Field& field : kind.masked_by_default) {
            std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(field.offset), field.size, 0xff);
        }
    }
    return mask;
}

int compile_fields(const rte_flow_item& item, const ItemKind& kind, bool whole_masks_only, FlowPattern& to,
                   rte_flow_error* error) {
    if (item.spec == nullptr) {
        return 0;
    }
    std::vector<uint8_t> mask = mask_of(item, kind);
    const std::span<const uint8_t> spec = bytes_of(item.spec, kind.item_bytes);
    for (const Field& field : kind.fields) {
        FieldMatch match{.base = kind.base, .offset = static_cast<uint16_t>(field.offset)};
        for (size_t i = field.offset; i < field.offset + field.size; ++i) {
            match.mask.push_back(mask[i]);
            match.value.push_back(static_cast<uint8_t>(spec[i] & mask[i]));
            mask[i] = 0;
        }
        const auto set = static_cast<size_t>(std::ranges::count(match.mask, 0xff));
        const auto unset = static_cast<size_t>(std::ranges::count(match.mask, 0));
        if (unset == field.size) {
            continue;
        }
        if (whole_masks_only && set != field.size) {
            return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, &item,
                                      "partial masks are not supported");
        }
        to.fields.push_back(std::move(match));
    }
    if (std::ranges::any_of(mask, [](uint8_t rest) { return rest != 0; })) {
        return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, &item,
                                  "a masked field is not supported");
    }
    return 0;
}

int compile_vlan(const rte_flow_item& item, bool whole_masks_only, FlowPattern& to, rte_flow_error* error) {
    to.has_vlan = true;
    if (item.spec == nullptr) {
        return 0;
    }
    const auto& spec = *static_cast<const rte_flow_item_vlan*>(item.spec);
    const auto* mask = static_cast<const rte_flow_item_vlan*>(item.mask);
    const uint16_t tci_mask = mask == nullptr ? 0x0fff : rte_be_to_cpu_16(mask->tci);
    const uint16_t type_mask = mask == nullptr ? 0 : rte_be_to_cpu_16(mask->inner_type);
    if ((tci_mask & ~0x0fff) != 0 || (whole_masks_only && tci_mask != 0 && tci_mask != 0x0fff) ||
        (type_mask != 0 && type_mask != 0xffff)) {
        return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, &item,
                                  "of a VLAN, its number is matched, and the type in whole");
    }
    to.vlan_tci_mask = tci_mask;
    to.vlan_tci = static_cast<uint16_t>(rte_be_to_cpu_16(spec.tci) & tci_mask);
    if (type_mask != 0) {
        to.ether_type = rte_be_to_cpu_16(spec.inner_type);
    }
    return 0;
}

}  // namespace

bool FlowPattern::matches(const FrameFields& frame) const {
    if ((ether_type && frame.ether_type != *ether_type) ||
        (has_vlan && frame.vlan_tci.has_value() != *has_vlan) ||
        (vlan_tci_mask && (frame.vlan_tci.value_or(0) & *vlan_tci_mask) != vlan_tci)) {
        return false;
    }
    if (l4_protocol && (frame.l4.empty() || frame.ip_protocol != *l4_protocol)) {
        return false;
    }
    return std::ranges::all_of(fields, [&](const FieldMatch& field) {
        const std::span<const uint8_t> in = field.base == FieldMatch::Base::Frame ? frame.frame
                                            : field.base == FieldMatch::Base::L3  ? frame.l3
                                                                                  : frame.l4;
        if (in.size() < field.offset + field.mask.size()) {
            return false;
        }
        for (size_t i = 0; i < field.mask.size(); ++i) {
            if ((in[field.offset + i] & field.mask[i]) != field.value[i]) {
                return false;
            }
        }
        return true;
    });
}

int FlowTable::compile_items(const rte_flow_item* items, FlowPattern& to, rte_flow_error* error) const {
    if (items == nullptr) {
        return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_NUM, nullptr, "no pattern");
    }
    enum Layer { None, Ethernet, Vlan, Ip, Transport } reached = None;
    for (const rte_flow_item* item = items; item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
        if (item->type == RTE_FLOW_ITEM_TYPE_VOID) {
            continue;
        }
        const auto refuse = [&](const char* why) {
            return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, item, why);
        };
        if (!has(limits_.flow_items, item->type)) {
            return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, item, "item not supported");
        }
        if (item->last != nullptr) {
            return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST, item,
                                      "ranges are not supported");
        }
        if (item->spec == nullptr && item->mask != nullptr) {
            return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_MASK, item,
                                      "a mask without a spec");
        }
        const Layer layer = item->type == RTE_FLOW_ITEM_TYPE_ETH    ? Ethernet
                            : item->type == RTE_FLOW_ITEM_TYPE_VLAN ? Vlan
                            : item->type == RTE_FLOW_ITEM_TYPE_IPV4 || item->type == RTE_FLOW_ITEM_TYPE_IPV6
                                ? Ip
                                : Transport;
        if (layer <= reached) {
            return refuse("items must go up the layers");
        }
        int result = 0;
        switch (item->type) {
            case RTE_FLOW_ITEM_TYPE_ETH:
                result = compile_fields(*item, kEth, limits_.whole_masks_only, to, error);
                break;
            case RTE_FLOW_ITEM_TYPE_VLAN:
                result = compile_vlan(*item, limits_.whole_masks_only, to, error);
                break;
            case RTE_FLOW_ITEM_TYPE_IPV4:
            case RTE_FLOW_ITEM_TYPE_IPV6: {
                const bool is_v4 = item->type == RTE_FLOW_ITEM_TYPE_IPV4;
                to.ether_type = is_v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6;
                if (reached == Ethernet) {
                    to.has_vlan = false;
                }
                result = compile_fields(*item, is_v4 ? kIpv4 : kIpv6, limits_.whole_masks_only, to, error);
                break;
            }
            default:
                if (reached != Ip && reached != None) {
                    return refuse("a transport header behind no IP header");
                }
                to.l4_protocol = item->type == RTE_FLOW_ITEM_TYPE_TCP ? 6 : 17;
                result = compile_fields(*item, item->type == RTE_FLOW_ITEM_TYPE_TCP ? kTcp : kUdp,
                                        limits_.whole_masks_only, to, error);
                break;
        }
        if (result != 0) {
            return result;
        }
        reached = layer;
    }
    return 0;
}

int FlowTable::compile_rss(uint16_t queues, const rte_flow_action& action, FlowFate& to,
                           rte_flow_error* error) const {
    const auto* rss = static_cast<const rte_flow_action_rss*>(action.conf);
    const auto refuse = [&](int code, const char* why) {
        return rte_flow_error_set(error, code, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action, why);
    };
    if (rss == nullptr || rss->queue_num == 0 || rss->queue == nullptr) {
        return refuse(EINVAL, "RSS without queues");
    }
    if (rss->func != RTE_ETH_HASH_FUNCTION_DEFAULT && rss->func != RTE_ETH_HASH_FUNCTION_TOEPLITZ) {
        return refuse(ENOTSUP, "only Toeplitz is supported");
    }
    if (rss->level > 1) {
        return refuse(ENOTSUP, "inner RSS is not supported");
    }
    if ((rss->types & ~limits_.rss_types) != 0) {
        return refuse(ENOTSUP, "an RSS type is not supported");
    }
    if (rss->key_len != 0 &&
        (rss->key == nullptr || rss->key_len != limits_.key_bytes || limits_.key != Access::Set)) {
        return refuse(ENOTSUP, "the RSS key cannot be set");
    }
    for (uint32_t i = 0; i < rss->queue_num; ++i) {
        if (rss->queue[i] >= queues) {
            return refuse(EINVAL, "a queue that the port has not");
        }
        to.queues.push_back(rss->queue[i]);
    }
    to.rss_types = rss->types;
    if (rss->key_len != 0) {
        to.rss_key.assign(rss->key, rss->key + rss->key_len);
    }
    return 0;
}

int FlowTable::compile_actions(uint16_t queues, const rte_flow_action* actions, FlowFate& to,
                               rte_flow_error* error) const {
    if (actions == nullptr) {
        return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, nullptr, "no actions");
    }
    bool has_fate = false;
    for (const rte_flow_action* action = actions; action->type != RTE_FLOW_ACTION_TYPE_END; ++action) {
        if (action->type == RTE_FLOW_ACTION_TYPE_VOID) {
            continue;
        }
        const auto refuse = [&](const char* why) {
            return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action, why);
        };
        if (!has(limits_.flow_actions, action->type)) {
            return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, action,
                                      "action not supported");
        }
        const bool is_fate =
            action->type != RTE_FLOW_ACTION_TYPE_MARK && action->type != RTE_FLOW_ACTION_TYPE_COUNT;
        if (is_fate && has_fate) {
            return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, action, "a second fate");
        }
        has_fate |= is_fate;
        switch (action->type) {
            case RTE_FLOW_ACTION_TYPE_QUEUE: {
                const auto* queue = static_cast<const rte_flow_action_queue*>(action->conf);
                if (queue == nullptr || queue->index >= queues) {
                    return refuse("a queue that the port has not");
                }
                to.kind = FlowFate::Kind::Queue;
                to.queues = {queue->index};
                break;
            }
            case RTE_FLOW_ACTION_TYPE_DROP:
                to.kind = FlowFate::Kind::Drop;
                break;
            case RTE_FLOW_ACTION_TYPE_RSS:
                to.kind = FlowFate::Kind::Rss;
                if (const int result = compile_rss(queues, *action, to, error); result != 0) {
                    return result;
                }
                break;
            case RTE_FLOW_ACTION_TYPE_PASSTHRU:
                to.kind = FlowFate::Kind::Passthru;
                break;
            case RTE_FLOW_ACTION_TYPE_MARK: {
                const auto* mark = static_cast<const rte_flow_action_mark*>(action->conf);
                if (mark == nullptr ||
                    mark->id > 0xff'fffe) {  // 24 bits, as in current NICs with the widest marks
                    return refuse("a mark of more than 24 bits");
                }
                to.mark = mark->id;
                break;
            }
            default:
                to.counts = true;
                break;
        }
    }
    if (!has_fate) {
        return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, actions, "no fate");
    }
    if (to.kind == FlowFate::Kind::Drop && to.mark) {
        return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, actions,
                                  "what is dropped cannot be marked");
    }
    return 0;
}

int FlowTable::compile(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                       const rte_flow_action* actions, Compiled& to, rte_flow_error* error) const {
    if (attr == nullptr) {
        return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ATTR, nullptr, "no attributes");
    }
    if (attr->egress || attr->transfer || !attr->ingress) {
        return rte_flow_error_set(error, ENOTSUP,
                                  attr->egress     ? RTE_FLOW_ERROR_TYPE_ATTR_EGRESS
                                  : attr->transfer ? RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER
                                                   : RTE_FLOW_ERROR_TYPE_ATTR_INGRESS,
                                  attr, "only ingress is supported");
    }
    if (attr->group != 0) {
        return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP, attr,
                                  "groups are not supported");
    }
    if (attr->priority >= limits_.flow_priorities) {
        return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY, attr,
                                  "priority not supported");
    }
    const int result = compile_items(items, to.pattern, error);
    return result != 0 ? result : compile_actions(queues, actions, to.fate, error);
}

int FlowTable::validate(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                        const rte_flow_action* actions, rte_flow_error* error) const {
    Compiled compiled;
    return compile(queues, attr, items, actions, compiled, error);
}

rte_flow* FlowTable::create(uint16_t queues, const rte_flow_attr* attr, const rte_flow_item* items,
                            const rte_flow_action* actions, rte_flow_error* error) {
    Compiled compiled;
    if (compile(queues, attr, items, actions, compiled, error) != 0) {
        return nullptr;
    }
    if (rules_.size() >= limits_.flow_rules) {
        rte_flow_error_set(error, ENOSPC, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, "the flow table is full");
        return nullptr;
    }
    const bool exists = std::ranges::any_of(rules_, [&](const auto& rule) {
        return rule->priority == attr->priority && rule->pattern == compiled.pattern;
    });
    if (exists) {
        rte_flow_error_set(error, EEXIST, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr,
                           "there is a rule of this pattern");
        return nullptr;
    }
    const auto behind =
        std::ranges::find_if(rules_, [&](const auto& rule) { return rule->priority > attr->priority; });
    auto rule = std::make_unique<rte_flow>();
    rule->priority = attr->priority;
    rule->pattern = std::move(compiled.pattern);
    rule->fate = std::move(compiled.fate);
    return rules_.insert(behind, std::move(rule))->get();
}

int FlowTable::destroy(rte_flow* flow, rte_flow_error* error) {
    const auto rule = std::ranges::find_if(rules_, [&](const auto& one) { return one.get() == flow; });
    if (rule == rules_.end()) {
        return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_HANDLE, flow, "no such rule");
    }
    rules_.erase(rule);
    return 0;
}

int FlowTable::query(rte_flow* flow, const rte_flow_action* action, void* data, rte_flow_error* error) {
    if (std::ranges::none_of(rules_, [&](const auto& one) { return one.get() == flow; })) {
        return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_HANDLE, flow, "no such rule");
    }
    if (action->type != RTE_FLOW_ACTION_TYPE_COUNT || !flow->fate.counts) {
        return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, action,
                                  "the rule does not count");
    }
    auto& counts = *static_cast<rte_flow_query_count*>(data);
    counts.hits_set = 1;
    counts.bytes_set = 1;
    counts.hits = flow->hits;
    counts.bytes = flow->bytes;
    if (counts.reset != 0) {
        flow->hits = flow->bytes = 0;
    }
    return 0;
}

const FlowFate* FlowTable::decide(const FrameFields& frame, std::optional<uint32_t>& mark) {
    for (const auto& rule : rules_) {
        if (!rule->pattern.matches(frame)) {
            continue;
        }
        ++rule->hits;
        rule->bytes += frame.frame.size();
        if (rule->fate.mark && !mark) {
            mark = rule->fate.mark;
        }
        if (rule->fate.kind != FlowFate::Kind::Passthru) {
            return &rule->fate;
        }
    }
    return nullptr;
}

}  // namespace penstock::test
