// SPDX-License-Identifier: Apache-2.0
// Values of an AddressPool's fields: parsing and the rules for one pool (LB-007, LB-022, LB-023). Pure; any
// thread. An error begins with the offending value in parentheses and completes a sentence that begins with
// the path of the field: `("10.0.0.9-10.0.0.1"): the last address is below the first one`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/ipam/pool.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Maximum lengths of lists. charts/penstock/crds/addresspools.yaml has the same numbers, because the cost of
// its rules is bounded by them.
inline constexpr size_t kPoolAddressesMax = 256;
inline constexpr size_t kPoolNamespacesMax = 256;
inline constexpr size_t kPoolReservationsMax = 1024;

// `("TEXT")`: at most 80 bytes of text; bytes outside printable ASCII are replaced by '?'.
[[nodiscard]] std::string shown_value(std::string_view text);

// A CIDR "192.0.2.0/24" without bits behind its length, or a range "192.0.2.10-192.0.2.20" with both ends.
// Every address must be usable as a frontend (XIP-004).
[[nodiscard]] Result<ipam::AddressRange> parse_address_range(std::string_view text);

struct Overlap {
    size_t index = 0;  // of the later one of two items
    size_t with = 0;   // of the other one
};
// The first two of `ranges` that have an address in common; nullopt: they are disjoint. Costs n log n.
[[nodiscard]] std::optional<Overlap> overlap_in(const std::vector<ipam::AddressRange>& ranges);

// Ascending, IPv4 first: the order of ipam::Pool.
void sort_ranges(std::vector<ipam::AddressRange>& ranges);

// Error: not an address, in none of `ranges`, or excluded by `avoid_buggy_ips` (LB-012).
[[nodiscard]] Result<IpAddr> parse_reserved_address(std::string_view text,
                                                    const std::vector<ipam::AddressRange>& ranges,
                                                    bool avoid_buggy_ips);

// One requirement of a LabelSelector. An entry of matchLabels is `In` with one value.
struct LabelRequirement {
    std::string key;
    std::string op;  // In, NotIn, Exists, DoesNotExist
    std::vector<std::string> values;
};
struct LabelFault {
    const char* field;  // "key", "operator", "values"
    std::string rule;
};
// Validates the requirement. Appends a valid one to `selector`, a text for annotations::Selector::parse().
[[nodiscard]] std::optional<LabelFault> append_requirement(const LabelRequirement& requirement,
                                                           std::string& selector);

}  // namespace penstock::kube
