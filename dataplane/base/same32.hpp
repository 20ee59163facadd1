// SPDX-License-Identifier: Apache-2.0
// Compares 32 bytes without a branch on the data: the two IPv6 addresses of a key. Each form is tested
// against the plain one (tests/unit/base/same32_test.cpp).
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace penstock {

namespace detail {
PENSTOCK_ALWAYS_INLINE bool same32_plain(const void* a, const void* b) noexcept {
    const auto left = load<std::array<uint64_t, 4>>(a), right = load<std::array<uint64_t, 4>>(b);
    return ((left[0] ^ right[0]) | (left[1] ^ right[1]) | (left[2] ^ right[2]) | (left[3] ^ right[3])) == 0;
}
}  // namespace detail

// Neither needs to be aligned.
PENSTOCK_ALWAYS_INLINE bool same32(const void* a, const void* b) noexcept {
#if defined(__SSE4_1__)
    const auto *left = static_cast<const __m128i*>(a), *right = static_cast<const __m128i*>(b);
    const __m128i difference =
        _mm_or_si128(_mm_xor_si128(_mm_loadu_si128(left), _mm_loadu_si128(right)),
                     _mm_xor_si128(_mm_loadu_si128(left + 1), _mm_loadu_si128(right + 1)));
    return _mm_testz_si128(difference, difference) != 0;
#else
    return detail::same32_plain(a, b);
#endif
}

}  // namespace penstock
