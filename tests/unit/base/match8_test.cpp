// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/match8.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/prng.hpp"

namespace penstock {
namespace match8_test {

using Match = uint32_t (*)(const uint32_t*, uint32_t);

// All forms that this target supports.
const struct {
    const char* name;
    Match match;
} kForms[] = {
    {"chosen", [](const uint32_t* eight, uint32_t value) { return match8(eight, value); }},
#if defined(__SSE2__)
    {"sse2", [](const uint32_t* eight, uint32_t value) { return detail::match8_sse2(eight, value); }},
#endif
#if defined(__AVX2__)
    {"avx2", [](const uint32_t* eight, uint32_t value) { return detail::match8_avx2(eight, value); }},
#endif
#if defined(__ARM_NEON)
    {"neon", [](const uint32_t* eight, uint32_t value) { return detail::match8_neon(eight, value); }},
#endif
};

// All sets of equal words, among words that differ in one bit only, the sign bit included.
TEST(Match8, EachFormSaysWhatThePlainOneSays) {
    test::Prng prng;
    for (uint32_t equal = 0; equal < 256; ++equal) {
        const auto value = static_cast<uint32_t>(prng.next());
        std::array<uint32_t, 8> words;
        for (uint32_t i = 0; i < 8; ++i) {
            words[i] = (equal >> i & 1) != 0 ? value : value ^ 1U << prng.below(32);
        }
        ASSERT_EQ(detail::match8_plain(words.data(), value), equal);
        for (const auto& form : kForms) {
            EXPECT_EQ(form.match(words.data(), value), equal) << form.name;
        }
    }
}

TEST(Match16, IsTwoOfEight) {
    test::Prng prng;
    for (uint32_t equal = 0; equal < 65'536; ++equal) {
        const auto value = static_cast<uint32_t>(prng.next());
        std::array<uint32_t, 16> words;
        for (uint32_t i = 0; i < 16; ++i) {
            words[i] = (equal >> i & 1) != 0 ? value : value ^ 1U << prng.below(32);
        }
        ASSERT_EQ(match16(words.data(), value), equal);
    }
}

}  // namespace match8_test
}  // namespace penstock
