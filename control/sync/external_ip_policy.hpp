// SPDX-License-Identifier: Apache-2.0
// The file of --external-ip-policy: which namespaces may use which external IPs (XIP-006).
//
//   externalIPs:
//     - namespaces: [shop, web]        # exact names; "*" for all
//       services: tier in (edge, web)  # label selector; default: all Services there
//       cidrs: [203.0.113.0/24, "2001:db8::/64"]
//
// A file with any mistake grants nothing. Every mistake is reported with its line and rule.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "control/semantics/policy.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

using ExternalIpPolicy = std::vector<semantics::ExternalIpRule>;

inline constexpr size_t kPolicyBytesMax = 4 << 20;
// Number of mistakes reported individually. A file with more is probably not a policy file at all.
inline constexpr size_t kPolicyMistakesTold = 16;

// Pure. InvalidArgument: "line 3: rule 1: ..." for each mistake, joined by "; ". A text without any value is
// valid and grants nothing.
[[nodiscard]] Result<ExternalIpPolicy> parse_external_ip_policy(std::string_view text);

// The same for a file; its name precedes each error. NotFound if the file cannot be read.
[[nodiscard]] Result<ExternalIpPolicy> read_external_ip_policy(const std::filesystem::path& file);

}  // namespace penstock::sync
