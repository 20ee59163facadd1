// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/same32.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/prng.hpp"

namespace penstock {
namespace same32_test {

using Bytes = std::array<uint8_t, 33>;

// Equal bytes, and bytes that differ in one bit, at an even and at an odd address. Other bytes do not count.
TEST(Same32, EachFormFindsEachBit) {
    test::Prng prng;
    for (size_t at = 0; at < 2; ++at) {
        Bytes left, right;
        for (uint8_t& byte : left) {
            byte = static_cast<uint8_t>(prng.next());
        }
        right = left;
        right[at == 0 ? 32 : 0] ^= 0xff;
        const uint8_t *const a = left.data() + at, *const b = right.data() + at;
        EXPECT_TRUE(same32(a, b));
        EXPECT_TRUE(detail::same32_plain(a, b));
        for (size_t bit = 0; bit < 256; ++bit) {
            right[at + bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
            EXPECT_FALSE(same32(a, b)) << bit;
            EXPECT_FALSE(detail::same32_plain(a, b)) << bit;
            right[at + bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
        }
    }
}

}  // namespace same32_test
}  // namespace penstock
