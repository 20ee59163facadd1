// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shares/share_map.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::shares {

PrefixNumbers::PrefixNumbers(std::map<Prefix, uint8_t> numbers) : numbers_(std::move(numbers)) {
    for (const auto& [prefix, number] : numbers_) {
        (prefix.address().is_v4() ? v4_lengths_ : v6_lengths_).push_back(prefix.length());
    }
    for (std::vector<uint8_t>* lengths : {&v4_lengths_, &v6_lengths_}) {
        std::ranges::sort(*lengths, std::greater());
        lengths->erase(std::ranges::unique(*lengths).begin(), lengths->end());
    }
}

const uint8_t* PrefixNumbers::find(const IpAddr& address) const noexcept {
    for (const uint8_t length : address.is_v4() ? v4_lengths_ : v6_lengths_) {
        if (const auto found = numbers_.find(*Prefix::make(address, length)); found != numbers_.end()) {
            return &found->second;
        }
    }
    return nullptr;
}

namespace {
PrefixNumbers numbers_of(const SpreadVips& spread) {
    std::map<Prefix, uint8_t> numbers;
    for (const Prefix& vips : spread.vips) {
        numbers.emplace(vips, uint8_t{0});
    }
    return PrefixNumbers(std::move(numbers));
}
}  // namespace

ShareMap::ShareMap(uint8_t shares, std::map<Prefix, uint8_t> placed, const SpreadVips& spread)
    : shares_(shares), placed_(std::move(placed)), spread_(numbers_of(spread)), spread_key_(spread.key) {
    PENSTOCK_ASSERT(shares_ > 0 && shares_ <= kSharesMax);
}

}  // namespace penstock::shares
