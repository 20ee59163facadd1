// A set of prefixes of both families, asked for each packet whether an address is in one of them: the shape of the route table
// (prefix_map.hpp), so that a list of one line and one of a hundred thousand cost a few lines of memory. Immutable.
#pragma once

#include <span>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/route/prefix_map.hpp"

namespace penstock::route {

class PrefixSet {
 public:
    PrefixSet() = default;  // nothing is in it
    explicit PrefixSet(std::vector<Prefix> prefixes);

    [[nodiscard]] bool contains(const IpAddr& address) const noexcept {
        const auto high = load<uint64_t>(address.bytes().data());
        const auto low = load<uint64_t>(address.bytes().data() + 8);
        return (address.is_v4() ? v4_.find(address.v4_wire().host())
                                : v6_.find(__builtin_bswap64(high), __builtin_bswap64(low))) !=
               Intervals<uint32_t>::kNone;
    }
    // All of it lies in one prefix of the set. Control threads.
    [[nodiscard]] bool contains(const Prefix& prefix) const;
    // Sorted; what lies inside another is left out.
    [[nodiscard]] std::span<const Prefix> prefixes() const noexcept { return prefixes_; }
    [[nodiscard]] bool empty() const noexcept { return prefixes_.empty(); }
    bool operator==(const PrefixSet& other) const { return prefixes_ == other.prefixes_; }

 private:
    std::vector<Prefix> prefixes_;
    PrefixMap4 v4_;
    PrefixMap6 v6_;
};

}  // namespace penstock::route
