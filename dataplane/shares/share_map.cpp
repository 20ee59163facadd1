// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shares/share_map.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::shares {

namespace {

std::pair<uint64_t, uint64_t> halves(const std::array<uint8_t, 16>& bytes) noexcept {
    return {load<uint64_t>(bytes.data()), load<uint64_t>(bytes.data() + 8)};
}

// An IPv4 mask has the mapped form, as its addresses have.
std::pair<uint64_t, uint64_t> mask_of(bool is_v4, uint8_t length) noexcept {
    std::array<uint8_t, 16> ones;
    ones.fill(0xff);
    return halves(
        Prefix::make(is_v4 ? IpAddr::v4(255, 255, 255, 255) : IpAddr::v6(ones), length)->address().bytes());
}

}  // namespace

PrefixNumbers::PrefixNumbers(const std::map<Prefix, uint8_t>& numbers) {
    using Lengths = std::map<uint8_t, Length, std::greater<>>;
    Lengths v4, v6;
    for (const auto& [prefix, number] : numbers) {
        const bool is_v4 = prefix.address().is_v4();
        Length& length = (is_v4 ? v4 : v6)[prefix.length()];
        std::tie(length.mask.first, length.mask.second) = mask_of(is_v4, prefix.length());
        const auto [first, second] = halves(prefix.address().bytes());
        length.numbers.push_back({{first, second}, number});
    }
    for (const auto& [from, to] : {std::pair{&v4, &v4_}, std::pair{&v6, &v6_}}) {
        for (auto& [bits, length] : *from) {
            std::ranges::sort(length.numbers);
            to->push_back(std::move(length));
        }
    }
}

const uint8_t* PrefixNumbers::find(const IpAddr& address) const noexcept {
    const auto [first, second] = halves(address.bytes());
    for (const Length& length : address.is_v4() ? v4_ : v6_) {
        const Bits bits{first & length.mask.first, second & length.mask.second};
        const auto found =
            std::ranges::lower_bound(length.numbers, bits, {}, &std::pair<Bits, uint8_t>::first);
        if (found != length.numbers.end() && found->first == bits) {
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
    return PrefixNumbers(numbers);
}
}  // namespace

ShareMap::ShareMap(uint8_t shares, const std::map<Prefix, uint8_t>& placed, const SpreadVips& spread)
    : shares_(shares), placed_(placed), spread_(numbers_of(spread)), spread_key_(spread.key) {
    PENSTOCK_ASSERT(shares_ > 0 && shares_ <= kSharesMax);
}

}  // namespace penstock::shares
