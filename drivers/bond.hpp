// A bond of ports (net_bonding): its members, given by one slave= argument each, are DPDK ports of this process, PCI addresses as a rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::drivers {

// Of its device string; may stand there several times.
inline constexpr std::string_view kBondMember = "slave";

// Lets the members of a bond that was just probed join it, `wanted` of them. net_bonding adds them when it is configured for the first
// time, and tells only then what they have in common. An error names how many came.
[[nodiscard]] Status join_members(uint16_t dpdk_port, size_t wanted);

// Device names, those that send and receive now first. Empty for a port that is no bond. Any control thread.
[[nodiscard]] std::vector<std::string> members_of(uint16_t dpdk_port);

}  // namespace penstock::drivers
