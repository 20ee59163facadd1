// SPDX-License-Identifier: Apache-2.0
// The file of --shares: a plan as text.
//
//   version 7
//   gateway edge-1 address=10.0.0.1:7443 link=10.0.1.1
//   gateway edge-2 weight=2 address=edge-2.example:7443 link=10.0.1.2
//   strays forward
//   spread 203.0.113.64/28 key=7046029254386353131
//   shares 16
//   share 3 vips=203.0.113.0/28,2001:db8::/64 primary=edge-2 heir=edge-1 snat=198.51.100.3,2001:db8:1::3
//   end
//
// Text after a # is a comment. A file without its last line, `end`, is incomplete: a part of a plan would be
// another plan. Without `shares` there are kSharesDefault of them. A VIP belongs to the share whose `vips`
// contain it, otherwise to the one that its hash selects. The hash also selects a primary and an heir that
// the file does not name. `snat` lists the SNAT addresses of a share: global unicast addresses that no other
// share and no `vips` contain, at most limits::kSnatAddressesMax of all shares. Gateways with an address copy
// connections to each other; one without takes part in no copies. With `strays forward`, gateways forward
// packets of other gateways' shares to their `link` (docs/adr/0051). `spread` VIPs are announced by all of
// them. Parsing is strict: a file with any mistake changes nothing, and each mistake is reported with its
// line and rule. Pure, except for reading the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "control/shares/plan.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::shares {

inline constexpr size_t kSharesDefault = 16;
inline constexpr size_t kPlanBytesMax = 1 << 20;
// Mistakes that are reported individually.
inline constexpr size_t kPlanMistakesMax = 16;

// InvalidArgument: "line 3: ..." for each mistake, joined by "; ".
[[nodiscard]] Result<Plan> parse_plan(std::string_view text);

// Whether a plan can contain a gateway of this name.
[[nodiscard]] bool is_gateway_name(std::string_view text) noexcept;
inline constexpr size_t kGatewayNameBytesMax = 253;
// A host name and a port.
inline constexpr size_t kGatewayAddressBytesMax = 253 + 6;
inline constexpr std::string_view kGatewayNameRule = "letters, digits, '.', '-' and '_'";

// The content of a file. Each error begins with the file name. NotFound: there is no such file.
[[nodiscard]] Result<std::string> read_plan_text(const std::filesystem::path& file);
// The same, parsed.
[[nodiscard]] Result<Plan> read_plan(const std::filesystem::path& file);

}  // namespace penstock::shares
