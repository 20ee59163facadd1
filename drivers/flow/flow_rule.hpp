// SPDX-License-Identifier: Apache-2.0
// A NIC rule as plain data: what a port does with frames of one kind before a worker receives them. No DPDK
// here. flow_compile.hpp compiles a rule to rte_flow, and flow_install.hpp installs it on the port.
//
// No rule is needed for correct forwarding. Each rule saves work that software does otherwise, so a port that
// refuses a rule, loses it or does not count is slower, but never wrong. The one exception is isolation,
// which therefore must be enabled by the operator (docs/operations.md).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::drivers {

// In the order of priority for a port's rules if there are not enough for all
// (control/gateway/rules/flow_plan.hpp).
enum class FlowKind : uint8_t {
    // The gateway's frames go to the workers, the rest stays with the kernel (bifurcated drivers).
    VipIsolate,
    SnatToQueue,  // replies to a worker's SNAT ports go to its queue
    SourceDrop,   // drops packets that software would drop by their source
    VipMark,      // attaches a frontend's number to its packets
};
inline constexpr FlowKind kFlowKinds[] = {FlowKind::VipIsolate, FlowKind::SnatToQueue, FlowKind::SourceDrop,
                                          FlowKind::VipMark};
[[nodiscard]] const char* to_string(
    FlowKind kind) noexcept;  // "vip-isolate", "snat-to-queue", "source-drop", "vip-mark"

// The IP protocols that rules name besides TCP and UDP.
inline constexpr uint8_t kIpTcp = 6;
inline constexpr uint8_t kIpUdp = 17;
inline constexpr uint8_t kIpIcmpv6 = 58;
inline constexpr uint16_t kEtherTypeArp = 0x0806;

// An unset field matches anything. A frame with a VLAN tag matches no rule. Software handles it as it does
// without rules.
struct FlowMatch {
    uint16_t ether_type = 0;         // for frames other than IP; then no other field is set
    std::optional<IpFamily> family;  // set if any IP field is
    std::optional<Prefix> source;
    std::optional<IpAddr> destination;
    uint8_t ip_protocol = 0;           // 0: any
    L4Port destination_port = 0;       // TCP and UDP; only the bits in the mask
    L4Port destination_port_mask = 0;  // 0: any port
    bool opens_tcp = false;            // only segments with SYN and without ACK

    constexpr bool operator==(const FlowMatch&) const = default;
    constexpr auto operator<=>(const FlowMatch&) const = default;
    // "from 192.0.2.0/24 to 198.51.100.7 tcp port 64-127/128", "arp", "ipv6 icmpv6", "everything else"
    [[nodiscard]] std::string to_string() const;
};

enum class FlowVerb : uint8_t {
    ToQueue,  // `value` is the queue
    Spread,   // RSS over all queues of the port
    Drop,
    Mark,      // attaches `value`; RSS still chooses the queue
    ToKernel,  // not a rule of its own: isolation does this with all frames that match no rule
};

struct FlowAction {
    FlowVerb verb = FlowVerb::Drop;
    uint32_t value = 0;
    constexpr bool operator==(const FlowAction&) const = default;
    constexpr auto operator<=>(const FlowAction&) const = default;
    [[nodiscard]] std::string to_string() const;  // "queue 1", "spread", "drop", "mark 7", "kernel"
};

struct FlowRule {
    FlowKind kind = FlowKind::SourceDrop;
    FlowMatch match;
    FlowAction action;
    bool counted = false;  // hits are requested; a port that cannot count gets the rule uncounted
    constexpr bool operator==(const FlowRule&) const = default;
    constexpr auto operator<=>(const FlowRule&) const = default;

    // The part of isolation that is not a rule: the port leaves all other frames to the kernel. Installed by
    // rte_flow_isolate, never compiled.
    static FlowRule isolation() { return {FlowKind::VipIsolate, {}, {FlowVerb::ToKernel, 0}, false}; }
    [[nodiscard]] bool is_isolation() const noexcept { return action.verb == FlowVerb::ToKernel; }
};

}  // namespace penstock::drivers
