// Is an address in any of these prefixes? A cluster has a Pod CIDR for each of thousands of Nodes, nearly all of one length: one hash
// look-up for each length that occurs. Members are counted, so that one which two Nodes name stays until both have given it up.
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
    // One that was added.
    void remove(const Prefix& prefix);
    [[nodiscard]] bool empty() const noexcept { return networks_.empty(); }
    // The longest member that contains `address`.
    [[nodiscard]] std::optional<Prefix> longest_match(const IpAddr& address) const;
    // Whether one member contains all of `prefix`.
    [[nodiscard]] bool covers(const Prefix& prefix) const;
    // The members that are inside no other one: a few cover the same addresses as all. Sorted.
    [[nodiscard]] std::vector<Prefix> outermost() const;

 private:
    // Lengths in descending order, so that the first match is the longest.
    std::map<std::pair<IpFamily, uint8_t>, std::unordered_map<IpAddr, uint32_t>, std::greater<>> networks_;
};

}  // namespace penstock::semantics
