// SPDX-License-Identifier: Apache-2.0
// A set of prefixes of both families, with a per-packet membership test for an address. It has the structure
// of the route table (prefix_map.hpp), so that one listed prefix and a hundred thousand both cost a few cache
// lines. Immutable.
#pragma once

#include <span>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/route/prefix_map.hpp"

namespace penstock::route {

class PrefixSet {
 public:
    PrefixSet() = default;  // the empty set
    explicit PrefixSet(std::vector<Prefix> prefixes);

    [[nodiscard]] bool contains(const IpAddr& address) const noexcept {
        const auto high = load<uint64_t>(address.bytes().data());
        const auto low = load<uint64_t>(address.bytes().data() + 8);
        return (address.is_v4() ? v4_.find(address.v4_wire().host())
                                : v6_.find(__builtin_bswap64(high), __builtin_bswap64(low))) !=
               Intervals<uint32_t>::kNone;
    }
    // Whether all of `prefix` is inside one prefix of the set. Control threads.
    [[nodiscard]] bool contains(const Prefix& prefix) const;
    // Sorted; prefixes inside another one are omitted.
    [[nodiscard]] std::span<const Prefix> prefixes() const noexcept { return prefixes_; }
    [[nodiscard]] bool empty() const noexcept { return prefixes_.empty(); }
    bool operator==(const PrefixSet& other) const { return prefixes_ == other.prefixes_; }

 private:
    std::vector<Prefix> prefixes_;
    PrefixMap4 v4_;
    PrefixMap6 v6_;
};

}  // namespace penstock::route
