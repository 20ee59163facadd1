// SPDX-License-Identifier: Apache-2.0
// File with the addresses that were given to the Services of a folder of manifests, which has no status to
// keep them in (LB-008):
//
//   penstock-allocations 1
//   default/web 203.0.113.7 2001:db8:203::7
//
// One line for each Service: namespace/name and its addresses, separated by spaces.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/object_id.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

using SavedAllocations = std::map<kube::ObjectName, std::vector<IpAddr>>;

inline constexpr size_t kAllocationFileBytesMax = 64 << 20;  // about a million Services

// Pure. Error: Corrupt, which names the line and the rule.
[[nodiscard]] Result<SavedAllocations> parse_allocations(std::string_view text);
[[nodiscard]] std::string allocations_text(const SavedAllocations& allocations);

// An absent file has no allocations. A damaged file is an error that a start must not ignore: its Services
// would get other addresses.
[[nodiscard]] Result<SavedAllocations> read_allocations(const std::string& path);
[[nodiscard]] Status write_allocations(const std::string& path, const SavedAllocations& allocations);

}  // namespace penstock::sync
