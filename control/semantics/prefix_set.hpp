// Is an address in any of these prefixes? A cluster has a Pod CIDR for each of thousands of Nodes, nearly all of one length: one hash
// look-up for each length that occurs.
#pragma once

#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

class PrefixSet {
 public:
    PrefixSet() = default;
    explicit PrefixSet(const std::vector<Prefix>& prefixes);
    void add(const Prefix& prefix);
    // The longest member that contains `address`.
    [[nodiscard]] std::optional<Prefix> longest_match(const IpAddr& address) const;

 private:
    // Lengths in descending order, so that the first match is the longest.
    std::map<std::pair<IpFamily, uint8_t>, std::unordered_set<IpAddr>, std::greater<>> networks_;
};

}  // namespace penstock::semantics
