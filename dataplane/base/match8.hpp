// SPDX-License-Identifier: Apache-2.0
// Compares eight 32-bit words with a value and returns one bit for each word that is equal: the inner step of
// a table that compares whole buckets. There are no branches, because the position of the match cannot be
// predicted. The widest form that the target supports is chosen at compile time. Each form is tested against
// the plain one (tests/unit/base/match8_test.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/cpu.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace penstock {

namespace detail {
PENSTOCK_ALWAYS_INLINE uint32_t match8_plain(const uint32_t* eight, uint32_t value) noexcept {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        bits |= static_cast<uint32_t>(eight[i] == value) << i;
    }
    return bits;
}

#if defined(__SSE2__)
PENSTOCK_ALWAYS_INLINE uint32_t match8_sse2(const uint32_t* eight, uint32_t value) noexcept {
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(value));
    const __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(eight)), wanted);
    const __m128i high =
        _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(eight + 4)), wanted);
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    return static_cast<uint32_t>(_mm_movemask_epi8(bytes));
}
#endif
#if defined(__AVX2__)
PENSTOCK_ALWAYS_INLINE uint32_t match8_avx2(const uint32_t* eight, uint32_t value) noexcept {
    const __m256i equal = _mm256_cmpeq_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(eight)),
                                             _mm256_set1_epi32(static_cast<int>(value)));
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
}
#endif
#if defined(__ARM_NEON)
PENSTOCK_ALWAYS_INLINE uint32_t match8_neon(const uint32_t* eight, uint32_t value) noexcept {
    const uint32x4_t wanted = vdupq_n_u32(value);
    const uint16x8_t equal = vcombine_u16(vmovn_u32(vceqq_u32(vld1q_u32(eight), wanted)),
                                          vmovn_u32(vceqq_u32(vld1q_u32(eight + 4), wanted)));
    static constexpr uint16_t kBit[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    return vaddvq_u16(vandq_u16(equal, vld1q_u16(kBit)));
}
#endif
}  // namespace detail

PENSTOCK_ALWAYS_INLINE uint32_t match8(const uint32_t* eight, uint32_t value) noexcept {
#if defined(__AVX2__)
    return detail::match8_avx2(eight, value);
#elif defined(__SSE2__)
    return detail::match8_sse2(eight, value);
#elif defined(__ARM_NEON)
    return detail::match8_neon(eight, value);
#else
    return detail::match8_plain(eight, value);
#endif
}

// The same for sixteen words.
PENSTOCK_ALWAYS_INLINE uint32_t match16(const uint32_t* sixteen, uint32_t value) noexcept {
#if defined(__SSE2__) && !defined(__AVX2__)
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(value));
    const auto equal = [&](size_t at) {
        return _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen + at)), wanted);
    };
    return static_cast<uint32_t>(_mm_movemask_epi8(
        _mm_packs_epi16(_mm_packs_epi32(equal(0), equal(4)), _mm_packs_epi32(equal(8), equal(12)))));
#else
    return match8(sixteen, value) | match8(sixteen + 8, value) << 8;
#endif
}

}  // namespace penstock
