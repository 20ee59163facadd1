// A bond of ports (net_bonding): its members, given by one member= argument each, are DPDK ports of this process, PCI addresses as a rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::drivers {

struct DeviceString;

// Of its device string; may stand there several times. DPDK's own word, which settle_bond() puts for ours.
inline constexpr std::string_view kBondMember = "slave";

// Puts a bond's arguments as DPDK takes them: `member`, modes by their names (active-backup where none is given), and a hash over ports
// where members share the load. Pure. InvalidArgument: a mode that is no use to a gateway, and why; no member, or one twice.
[[nodiscard]] Status settle_bond(DeviceString& device);

// Lets the members of a bond that was just probed join it, `wanted` of them. net_bonding adds them when it is configured for the first
// time, and tells only then what they have in common. An error names how many came. The bond keeps the MAC
// address that it has then.
[[nodiscard]] Status join_members(uint16_t dpdk_port, size_t wanted);

// Device names, those that send and receive now first; with active-backup the one that does. Empty for a port that is no bond. Any control
// thread.
[[nodiscard]] std::vector<std::string> members_of(uint16_t dpdk_port);

}  // namespace penstock::drivers
