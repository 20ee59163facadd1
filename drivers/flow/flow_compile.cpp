// SPDX-License-Identifier: Apache-2.0
#include "drivers/flow/flow_compile.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace penstock::drivers {
namespace {

// PMDs keep 16 bits of a mark if the descriptor has no room for more.
constexpr uint32_t kMarkMax = 0xffff;

// The mask of a prefix length, in wire order.
template <size_t N>
void write_mask(uint8_t (&mask)[N], unsigned length) noexcept {
    for (size_t i = 0; i < N; ++i) {
        const unsigned bits = std::clamp<int>(static_cast<int>(length) - static_cast<int>(8 * i), 0, 8);
        mask[i] = static_cast<uint8_t>(0xff00U >> bits);
    }
}

rte_be32_t v4_mask(unsigned length) noexcept {
    uint8_t bytes[4];
    write_mask(bytes, length);
    return load<rte_be32_t>(bytes);
}

// Checks the match for contradictions before it is compiled.
Status check(const FlowMatch& match) {
    const bool has_ip = match.family || match.source || match.destination || match.ip_protocol != 0;
    if (match.ether_type != 0 && has_ip) {
        return fail(Errc::InvalidArgument, "an EtherType together with an IP field");
    }
    if (match.ether_type == 0 && !match.family) {
        return fail(Errc::InvalidArgument, "neither an EtherType nor an IP version");
    }
    if ((match.source && match.source->family() != *match.family) ||
        (match.destination && match.destination->family() != *match.family)) {
        return fail(Errc::InvalidArgument, "an address of another IP version");
    }
    const bool has_ports = match.ip_protocol == kIpTcp || match.ip_protocol == kIpUdp;
    if (match.destination_port_mask != 0 && !has_ports) {
        return fail(Errc::InvalidArgument, "an L4 port without TCP or UDP");
    }
    if ((match.destination_port & ~match.destination_port_mask) != 0) {
        return fail(Errc::InvalidArgument, "a bit of the L4 port outside its mask");
    }
    if (match.opens_tcp && match.ip_protocol != kIpTcp) {
        return fail(Errc::InvalidArgument, "a SYN without TCP");
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<CompiledFlow>> CompiledFlow::compile(const FlowRule& rule, const FlowPortFacts& port) {
    if (rule.is_isolation()) {
        return fail(Errc::Unsupported,
                    "frames that match no rule are left to the kernel by isolation, not by a rule");
    }
    PENSTOCK_TRY_STATUS_IN(rule.match.to_string(), check(rule.match));
    std::unique_ptr<CompiledFlow> flow(new CompiledFlow);
    flow->attributes_.ingress = 1;
    flow->add_ethernet(rule.match);
    if (rule.match.family) {
        flow->add_ip(rule.match);
        flow->add_l4(rule.match);
    }
    PENSTOCK_TRY_STATUS_IN(rule.action.to_string(), flow->add_actions(rule, port));
    return flow;
}

void CompiledFlow::add_ethernet(const FlowMatch& match) noexcept {
    if (match.ether_type == 0) {
        return add(RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr);  // the next item determines the type
    }
    ethernet_.spec.type = rte_cpu_to_be_16(match.ether_type);
    ethernet_.mask.type = 0xffff;
    add(RTE_FLOW_ITEM_TYPE_ETH, &ethernet_.spec, &ethernet_.mask);
}

void CompiledFlow::add_ip(const FlowMatch& match) noexcept {
    // TCP and UDP have an item of their own.
    const bool has_item = match.ip_protocol == kIpTcp || match.ip_protocol == kIpUdp;
    const uint8_t protocol = has_item ? 0 : match.ip_protocol;
    const bool has_source = match.source && match.source->length() > 0;
    const bool is_any = !has_source && !match.destination && protocol == 0;
    if (*match.family == IpFamily::V4) {
        rte_ipv4_hdr& spec = ipv4_.spec.hdr;
        rte_ipv4_hdr& mask = ipv4_.mask.hdr;
        if (has_source) {
            spec.src_addr = match.source->address().v4_wire().raw();
            mask.src_addr = v4_mask(match.source->length());
        }
        if (match.destination) {
            spec.dst_addr = match.destination->v4_wire().raw();
            mask.dst_addr = v4_mask(32);
        }
        if (protocol != 0) {
            spec.next_proto_id = protocol;
            mask.next_proto_id = 0xff;
        }
        return is_any ? add(RTE_FLOW_ITEM_TYPE_IPV4, nullptr, nullptr)
                      : add(RTE_FLOW_ITEM_TYPE_IPV4, &ipv4_.spec, &ipv4_.mask);
    }
    rte_ipv6_hdr& spec = ipv6_.spec.hdr;
    rte_ipv6_hdr& mask = ipv6_.mask.hdr;
    if (has_source) {
        std::ranges::copy(match.source->address().bytes(), spec.src_addr);
        write_mask(mask.src_addr, match.source->length());
    }
    if (match.destination) {
        std::ranges::copy(match.destination->bytes(), spec.dst_addr);
        write_mask(mask.dst_addr, 128);
    }
    if (protocol != 0) {
        spec.proto = protocol;
        mask.proto = 0xff;
    }
    return is_any ? add(RTE_FLOW_ITEM_TYPE_IPV6, nullptr, nullptr)
                  : add(RTE_FLOW_ITEM_TYPE_IPV6, &ipv6_.spec, &ipv6_.mask);
}

void CompiledFlow::add_l4(const FlowMatch& match) noexcept {
    const rte_be16_t port = rte_cpu_to_be_16(match.destination_port);
    const rte_be16_t port_mask = rte_cpu_to_be_16(match.destination_port_mask);
    if (match.ip_protocol == kIpTcp) {
        tcp_.spec.hdr.dst_port = port;
        tcp_.mask.hdr.dst_port = port_mask;
        if (match.opens_tcp) {
            tcp_.spec.hdr.tcp_flags = RTE_TCP_SYN_FLAG;
            tcp_.mask.hdr.tcp_flags = RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG;
        }
        const bool is_any = port_mask == 0 && !match.opens_tcp;
        is_any ? add(RTE_FLOW_ITEM_TYPE_TCP, nullptr, nullptr)
               : add(RTE_FLOW_ITEM_TYPE_TCP, &tcp_.spec, &tcp_.mask);
    } else if (match.ip_protocol == kIpUdp) {
        udp_.spec.hdr.dst_port = port;
        udp_.mask.hdr.dst_port = port_mask;
        port_mask == 0 ? add(RTE_FLOW_ITEM_TYPE_UDP, nullptr, nullptr)
                       : add(RTE_FLOW_ITEM_TYPE_UDP, &udp_.spec, &udp_.mask);
    }
}

void CompiledFlow::add_spread(const FlowPortFacts& port) {
    if (port.rss_types == 0 || port.rx_queues == 1) {
        queue_.index = 0;  // RSS is off, or there is only one queue
        return add(RTE_FLOW_ACTION_TYPE_QUEUE, &queue_);
    }
    rss_queues_.resize(port.rx_queues);
    std::iota(rss_queues_.begin(), rss_queues_.end(), uint16_t{0});
    rss_key_ = port.rss_key;
    rss_ = {.func = RTE_ETH_HASH_FUNCTION_DEFAULT,
            .level = 0,
            .types = port.rss_types,
            .key_len = static_cast<uint32_t>(rss_key_.size()),
            .queue_num = static_cast<uint32_t>(rss_queues_.size()),
            .key = rss_key_.empty() ? nullptr : rss_key_.data(),
            .queue = rss_queues_.data()};
    add(RTE_FLOW_ACTION_TYPE_RSS, &rss_);
}

Status CompiledFlow::add_actions(const FlowRule& rule, const FlowPortFacts& port) {
    if (rule.counted) {
        add(RTE_FLOW_ACTION_TYPE_COUNT, &count_);
    }
    switch (rule.action.verb) {
        case FlowVerb::ToQueue:
            if (rule.action.value >= port.rx_queues) {
                return fail(Errc::InvalidArgument,
                            "the port has " + std::to_string(port.rx_queues) + " receive queues");
            }
            queue_.index = static_cast<uint16_t>(rule.action.value);
            add(RTE_FLOW_ACTION_TYPE_QUEUE, &queue_);
            return {};
        case FlowVerb::Spread:
            add_spread(port);
            return {};
        case FlowVerb::Drop:
            add(RTE_FLOW_ACTION_TYPE_DROP, nullptr);
            return {};
        case FlowVerb::Mark:
            if (rule.action.value > kMarkMax) {
                return fail(Errc::InvalidArgument, "a mark has 16 bits");
            }
            mark_.id = rule.action.value;
            add(RTE_FLOW_ACTION_TYPE_MARK, &mark_);
            port.mark_spreads ? add_spread(port) : add(RTE_FLOW_ACTION_TYPE_PASSTHRU, nullptr);
            return {};
        case FlowVerb::ToKernel:
            break;
    }
    return fail(Errc::Unsupported, "rte_flow has no such action");
}

}  // namespace penstock::drivers
