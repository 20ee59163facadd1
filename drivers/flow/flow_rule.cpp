// SPDX-License-Identifier: Apache-2.0
#include "drivers/flow/flow_rule.hpp"

#include <array>
#include <cstdio>

namespace penstock::drivers {
namespace {

std::string protocol_text(uint8_t ip_protocol) {
    switch (ip_protocol) {
        case kIpTcp:
            return "tcp";
        case kIpUdp:
            return "udp";
        case kIpIcmpv6:
            return "icmpv6";
        default:
            return "protocol " + std::to_string(ip_protocol);
    }
}

// A mask of 0x0040 leaves blocks of 64 ports, every second one. The first block and the step describe all of
// them.
std::string port_text(L4Port port, L4Port mask) {
    if (mask == 0xffff) {
        return std::to_string(port);
    }
    const unsigned lowest = mask & (~unsigned{mask} + 1);
    const unsigned highest_step = 1U << (32 - __builtin_clz(mask));
    const bool is_one_run = ((mask + lowest) & mask) == 0 || mask + lowest == 0x1'0000;
    if (!is_one_run) {
        std::array<char, 20> text{};
        std::snprintf(text.data(), text.size(), "0x%04x/0x%04x", unsigned{port}, unsigned{mask});
        return text.data();
    }
    std::string text = std::to_string(port) + "-" + std::to_string(port + lowest - 1);
    return highest_step > 0xffff ? text : text + "/" + std::to_string(highest_step);
}

}  // namespace

const char* to_string(FlowKind kind) noexcept {
    switch (kind) {
        case FlowKind::VipIsolate:
            return "vip-isolate";
        case FlowKind::SnatToQueue:
            return "snat-to-queue";
        case FlowKind::SourceDrop:
            return "source-drop";
        case FlowKind::VipMark:
            return "vip-mark";
    }
    return "unknown";
}

std::string FlowMatch::to_string() const {
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
    if (ether_type == kEtherTypeArp) {
        add("arp");
    } else if (ether_type != 0) {
        std::array<char, 20> type{};
        std::snprintf(type.data(), type.size(), "ethertype 0x%04x", unsigned{ether_type});
        add(type.data());
    }
    if (source) {
        add("from " + source->to_string());
    }
    if (destination) {
        add("to " + destination->to_string());
    }
    if (family && !source && !destination) {
        add(*family == IpFamily::V4 ? "ipv4" : "ipv6");
    }
    if (ip_protocol != 0) {
        add(protocol_text(ip_protocol));
    }
    if (destination_port_mask != 0) {
        add("port " + port_text(destination_port, destination_port_mask));
    }
    if (opens_tcp) {
        add("syn");
    }
    return text.empty() ? "everything else" : text;
}

std::string FlowAction::to_string() const {
    switch (verb) {
        case FlowVerb::ToQueue:
            return "queue " + std::to_string(value);
        case FlowVerb::Spread:
            return "spread";
        case FlowVerb::Drop:
            return "drop";
        case FlowVerb::Mark:
            return "mark " + std::to_string(value);
        case FlowVerb::ToKernel:
            return "kernel";
    }
    return "unknown";
}

}  // namespace penstock::drivers
