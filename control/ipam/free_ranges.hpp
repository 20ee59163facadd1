// SPDX-License-Identifier: Apache-2.0
// The free addresses of one family of a pool, as intervals. The cost depends on the number of gaps, not on
// the number of addresses, so an IPv6 /64 is as cheap as an IPv4 /24.
#pragma once

#include <map>
#include <optional>

#include "control/ipam/address_number.hpp"

namespace penstock::ipam {

class FreeRanges {
 public:
    FreeRanges() = default;
    // `skips_buggy`: lowest() never returns an address with is_buggy() (LB-012).
    FreeRanges(IpFamily family, bool skips_buggy) noexcept : family_(family), skips_buggy_(skips_buggy) {}

    // `range` must not overlap free addresses.
    void add(Number first, Number last);
    // Removes one address; no effect if it is not free.
    void take(Number address);
    // Adds an address that is not free.
    void put(Number address) { add(address, address); }

    // Constant time, apart from "buggy" addresses: each of them is removed when it is met for the first time.
    [[nodiscard]] std::optional<IpAddr> lowest();

 private:
    std::map<Number, Number> last_by_first_;  // disjoint and not adjacent
    IpFamily family_ = IpFamily::V4;
    bool skips_buggy_ = false;
};

}  // namespace penstock::ipam
