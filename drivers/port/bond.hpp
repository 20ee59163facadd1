// SPDX-License-Identifier: Apache-2.0
// A bond of ports (net_bonding). Its members, one member= argument each, are DPDK ports of this process,
// usually PCI addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::drivers {

struct DeviceString;

// Device argument of a member; may occur several times. DPDK's own name, by which complete_bond() replaces
// `member`.
inline constexpr std::string_view kBondMember = "slave";

// Translates a bond's arguments for DPDK: `member`, mode names to numbers (active-backup if none is given),
// and a hash over L4 ports for modes that share the load. Pure. InvalidArgument: a mode that a gateway cannot
// use, with the reason; no member; a member that is given twice.
[[nodiscard]] Status complete_bond(DeviceString& device);

// Makes the `wanted` members of a bond that was just probed join it. net_bonding adds its members when it is
// configured for the first time, and reports their common capabilities only then. The error gives the number
// of members that joined. The bond keeps the MAC address that it has at this moment.
[[nodiscard]] Status join_members(uint16_t dpdk_port, size_t wanted);

// Device names of the members, the active ones first; in active-backup mode, the active one first. Empty for
// a port that is not a bond. Any control thread.
[[nodiscard]] std::vector<std::string> members_of(uint16_t dpdk_port);

}  // namespace penstock::drivers
