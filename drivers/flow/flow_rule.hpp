// A rule in a NIC as plain data: what the gateway wants a port to do with frames of one kind before a worker sees them. No DPDK here; what
// becomes of a rule in rte_flow's words stands in flow_compile.hpp, and how it comes into the port in flow_install.hpp.
//
// No rule is needed for a right answer. Each one saves work that software does as well, so a port that refuses a rule, loses it or counts
// nothing is slower and never wrong. The one exception is isolation, which is why it is asked for by the operator (docs/operations.md).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::drivers {

// In the order in which they get a port's rules when there are not enough for all (control/gateway/rules/flow_plan.hpp).
enum class FlowKind : uint8_t {
    VipIsolate,   // ours comes to the workers, the rest stays with the kernel (bifurcated drivers)
    SnatToQueue,  // replies to a worker's SNAT ports go to its queue
    SourceDrop,   // what software would drop for its source
    VipMark,      // a frontend's number comes along with its packets
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

// What is not set matches anything. A frame with a VLAN tag matches no rule; software drops or delivers it as it does without rules.
struct FlowMatch {
    uint16_t ether_type = 0;         // for what is no IP; then nothing else is set
    std::optional<IpFamily> family;  // set where anything of IP is
    std::optional<Prefix> source;
    std::optional<IpAddr> destination;
    uint8_t ip_protocol = 0;           // 0: any
    L4Port destination_port = 0;       // TCP and UDP; those bits of it that the mask has
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
    Mark,      // `value` comes along; the queue stays RSS's choice
    ToKernel,  // no rule of its own: what isolation does with all that matches none
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
    bool counted = false;  // hits are wanted; a port that cannot count gets the rule without
    constexpr bool operator==(const FlowRule&) const = default;
    constexpr auto operator<=>(const FlowRule&) const = default;

    // That all of isolation but its rules: the port leaves the rest to the kernel. Installed by rte_flow_isolate, never compiled.
    static FlowRule isolation() { return {FlowKind::VipIsolate, {}, {FlowVerb::ToKernel, 0}, false}; }
    [[nodiscard]] bool is_isolation() const noexcept { return action.verb == FlowVerb::ToKernel; }
};

}  // namespace penstock::drivers
