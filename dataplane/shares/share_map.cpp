// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shares/share_map.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::shares {

ShareMap::ShareMap(uint8_t shares, std::map<Prefix, uint8_t> placed, SpreadVips spread)
    : shares_(shares), placed_(std::move(placed)), spread_(std::move(spread)) {
    PENSTOCK_ASSERT(shares_ > 0 && shares_ <= kSharesMax);
    for (const auto& [prefix, share] : placed_) {
        (prefix.address().is_v4() ? v4_lengths_ : v6_lengths_).push_back(prefix.length());
    }
    for (std::vector<uint8_t>* lengths : {&v4_lengths_, &v6_lengths_}) {
        std::ranges::sort(*lengths, std::greater());
        lengths->erase(std::ranges::unique(*lengths).begin(), lengths->end());
    }
}

bool ShareMap::is_spread(const IpAddr& vip) const noexcept {
    return std::ranges::any_of(spread_.vips, [&](const Prefix& vips) { return vips.contains(vip); });
}

uint8_t ShareMap::share_of(const IpAddr& vip) const {
    for (const uint8_t length : vip.is_v4() ? v4_lengths_ : v6_lengths_) {
        if (const auto found = placed_.find(*Prefix::make(vip, length)); found != placed_.end()) {
            return found->second;
        }
    }
    return static_cast<uint8_t>(share_hash(vip) % shares_);
}

}  // namespace penstock::shares
