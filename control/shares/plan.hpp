// SPDX-License-Identifier: Apache-2.0
// The plan of shares (docs/adr/0041): the gateways, and the primary and the heir of each share. Every gateway
// has the same plan, and computes the same result from it. The plan is valid while all other gateways and the
// cluster are away. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/shares/share_map.hpp"

namespace penstock::shares {

// The part of a gateway in a share.
enum class Role : uint8_t { None, Primary, Heir };
// "none", "primary", "heir"
[[nodiscard]] const char* to_string(Role role) noexcept;

struct Gateway {
    std::string name;    // penstockd --gateway-name
    uint8_t weight = 1;  // its part of the shares: 1 to kWeightMax
    // HOST:PORT of its gRPC server, for copies of connections (docs/adr/0050); "": it takes part in no copies
    std::string address = {};
    // Its address on a link of the gateways, to which strays are forwarded (docs/adr/0051).
    std::optional<IpAddr> link = {};
    bool operator==(const Gateway&) const = default;
};
// As large as a number of JSON and of a metric can be without rounding.
inline constexpr uint64_t kVersionMax = (uint64_t{1} << 53) - 1;
inline constexpr uint8_t kWeightMax = 100;
inline constexpr size_t kGatewaysMax = 64;
// VIP prefixes of all shares.
inline constexpr size_t kPlacedMax = 1'024;

struct Share {
    std::vector<Prefix> vips;  // sorted; VIPs that do not follow the hash
    std::string primary;       // name of a gateway
    std::string heir;          // "": there is only one gateway
    // Sorted; the source of translated flows of the share's VIPs. Empty: those of the gateway.
    std::vector<IpAddr> snat = {};
    bool operator==(const Share&) const = default;
};

struct Plan {
    uint64_t version = 0;  // of two plans, the higher one counts
    std::vector<Gateway> gateways;
    std::vector<Share> shares;  // 1 to kSharesMax, by number
    // Packets of shares that another gateway serves are forwarded to it (docs/adr/0051). False: each gateway
    // serves the packets that it gets.
    bool forwards_strays = false;
    // VIPs that all gateways announce, and whose share is that of the client. Sorted.
    std::vector<Prefix> spread = {};
    uint64_t spread_key = 0;  // of spread_hash()
    bool operator==(const Plan&) const = default;

    // Null: not in the plan.
    [[nodiscard]] const Gateway* gateway(std::string_view name) const noexcept;
    [[nodiscard]] Role role(size_t share, std::string_view gateway) const noexcept;
    // The shares in which both gateways have a role, as bits by number. 0: none, or the same gateway.
    [[nodiscard]] uint64_t common_shares(std::string_view one, std::string_view other) const noexcept;
    // A SNAT address belongs to its share also if a Service has it as a VIP.
    [[nodiscard]] ShareMap map() const;
};

// The gateways in the order in which they are preferred for a share: by rendezvous hash, each gateway with as
// many draws as its weight. The loss of a gateway changes the order of no two others.
[[nodiscard]] std::vector<std::string> by_preference(const std::vector<Gateway>& gateways, size_t share);

}  // namespace penstock::shares
