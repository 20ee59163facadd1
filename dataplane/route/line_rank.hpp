// SPDX-License-Identifier: Apache-2.0
// Counts the sorted numbers in one cache line that are smaller than a given one: the inner step of a search
// tree, without a branch on the data. The line holds signed numbers, because SSE compares signed numbers;
// stored() maps unsigned numbers to them in order. Keys fill the line up to its last four bytes, which belong
// to the caller.
//
// The instruction set is selected at build time (option march: SSE4.2 in x86-64-v2 as shipped, AVX-512 with
// x86-64-v4). The plain loop is the reference for the tests, and the implementation for other targets.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "dataplane/base/cpu.hpp"

#if defined(__AVX512BW__)
#include <immintrin.h>
#elif defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace penstock::route {

// `Key` is uint16_t, uint32_t or uint64_t.
template <typename Key>
struct LineRank {
    using Stored = std::make_signed_t<Key>;
    static constexpr size_t kKeys = (kCacheLine - sizeof(uint32_t)) / sizeof(Key);  // 30, 15, 7

    [[nodiscard]] static constexpr Stored stored(Key key) noexcept {
        return static_cast<Stored>(static_cast<Key>(key ^ static_cast<Key>(Key{1} << (sizeof(Key) * 8 - 1))));
    }

    // Counts in the first kKeys numbers of `line`, which are in ascending order and stored(). `line` has the
    // size and alignment of a cache line.
    [[nodiscard]] static uint32_t plain(const Stored* line, Key key) noexcept {
        uint32_t count = 0;
        for (size_t i = 0; i < kKeys; ++i) {
            count += line[i] < stored(key);
        }
        return count;
    }

#if defined(__AVX512BW__)
    [[nodiscard]] static PENSTOCK_ALWAYS_INLINE uint32_t count_before(const Stored* line, Key key) noexcept {
        const __m512i keys = _mm512_load_si512(line);
        constexpr auto kAll = (uint64_t{1} << kKeys) - 1;
        if constexpr (sizeof(Key) == 2) {
            return static_cast<uint32_t>(
                std::popcount(_mm512_mask_cmplt_epi16_mask(kAll, keys, _mm512_set1_epi16(stored(key)))));
        } else if constexpr (sizeof(Key) == 4) {
            return static_cast<uint32_t>(
                std::popcount(_mm512_mask_cmplt_epi32_mask(kAll, keys, _mm512_set1_epi32(stored(key)))));
        } else {
            return static_cast<uint32_t>(
                std::popcount(_mm512_mask_cmplt_epi64_mask(kAll, keys, _mm512_set1_epi64(stored(key)))));
        }
    }
#elif defined(__SSE4_2__)
    [[nodiscard]] static PENSTOCK_ALWAYS_INLINE uint32_t count_before(const Stored* line, Key key) noexcept {
        const auto* quarters = reinterpret_cast<const __m128i*>(line);
        if constexpr (sizeof(Key) == 2) {
            const __m128i wanted = _mm_set1_epi16(stored(key));
            const auto half = [&](const __m128i* at) {
                return static_cast<uint32_t>(
                    _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpgt_epi16(wanted, _mm_load_si128(at)),
                                                      _mm_cmpgt_epi16(wanted, _mm_load_si128(at + 1)))));
            };
            return ones_before_zero((half(quarters) | half(quarters + 2) << 16), kKeys);
        } else {
            const __m128i wanted = sizeof(Key) == 4 ? _mm_set1_epi32(static_cast<int32_t>(stored(key)))
                                                    : _mm_set1_epi64x(stored(key));
            const auto before = [&](const __m128i* at) {
                return sizeof(Key) == 4 ? _mm_cmpgt_epi32(wanted, _mm_load_si128(at))
                                        : _mm_cmpgt_epi64(wanted, _mm_load_si128(at));
            };
            const __m128i narrow =
                _mm_packs_epi16(_mm_packs_epi32(before(quarters), before(quarters + 1)),
                                _mm_packs_epi32(before(quarters + 2), before(quarters + 3)));
            // One bit per 32 bits, so a 64-bit key has two.
            constexpr uint32_t kBits = sizeof(Key) / 4;
            return ones_before_zero(static_cast<uint32_t>(_mm_movemask_epi8(narrow)), kKeys * kBits) / kBits;
        }
    }
#else
    [[nodiscard]] static uint32_t count_before(const Stored* line, Key key) noexcept {
        return plain(line, key);
    }
#endif

 private:
    // Keys are in ascending order, so the bits of the smaller ones are the lowest. The bits of the caller's
    // four bytes are at `keys` or above.
    [[nodiscard]] static PENSTOCK_ALWAYS_INLINE uint32_t ones_before_zero(uint32_t bits,
                                                                          size_t keys) noexcept {
        return static_cast<uint32_t>(std::countr_zero(~bits | uint32_t{1} << keys));
    }
};

}  // namespace penstock::route
