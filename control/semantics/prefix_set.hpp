// SPDX-License-Identifier: Apache-2.0
// A set of prefixes with longest-prefix match. A cluster has a Pod CIDR for each of thousands of Nodes,
// nearly all of the same length. A lookup therefore takes one hash lookup for each length that occurs.
// Members are reference-counted: a prefix that two Nodes name stays until both have removed it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

class PrefixSet {
 public:
    PrefixSet() = default;
    explicit PrefixSet(const std::vector<Prefix>& prefixes);
    void add(const Prefix& prefix);
    // Removes a prefix that was added.
    void remove(const Prefix& prefix);
    [[nodiscard]] bool empty() const noexcept { return networks_.empty(); }
    // The longest member that contains `address`.
    [[nodiscard]] std::optional<Prefix> longest_match(const IpAddr& address) const;
    // Whether one member contains all of `prefix`.
    [[nodiscard]] bool covers(const Prefix& prefix) const;
    // The members that are not inside another member, sorted. They cover the same addresses as all members.
    [[nodiscard]] std::vector<Prefix> outermost() const;

 private:
    // Lengths in descending order, so the first match is the longest.
    std::map<std::pair<IpFamily, uint8_t>, std::unordered_map<IpAddr, uint32_t>, std::greater<>> networks_;
};

}  // namespace penstock::semantics
