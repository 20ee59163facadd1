// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/crc32c.hpp"

#include <array>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#include "dataplane/base/check.hpp"

namespace penstock::packet {
namespace {

// Castagnoli's polynomial in the bit order used here: the highest power of x in the lowest bit. So 1 is 1 <<
// 31, and multiplying by x shifts to the right.
constexpr uint32_t kPolynomial = 0x82f6'3b78;
constexpr uint32_t kOne = 0x8000'0000;

constexpr uint32_t times_x(uint32_t a) noexcept {
    return (a >> 1) ^ (kPolynomial & (0U - (a & 1)));
}

// Multiplication modulo the polynomial. Branch-free, because an attacker controls the operands.
constexpr uint32_t multiply(uint32_t a, uint32_t b) noexcept {
    uint32_t product = 0;
    for (unsigned bit = 0; bit < 32; ++bit) {
        product ^= a & (0U - (b >> 31));
        a = times_x(a);
        b <<= 1;
    }
    return product;
}

// x to the power of 8 * unit * i: the factor of `unit` * i zero bytes.
template <unsigned kUnitBytes>
constexpr std::array<uint32_t, 256> kZeros = [] {
    uint32_t unit = kOne;
    for (unsigned bit = 0; bit < 8 * kUnitBytes; ++bit) {
        unit = times_x(unit);
    }
    std::array<uint32_t, 256> powers{};
    powers[0] = kOne;
    for (size_t i = 1; i < powers.size(); ++i) {
        powers[i] = multiply(powers[i - 1], unit);
    }
    return powers;
}();

#if defined(__SSE4_2__)
uint32_t step8(uint32_t state, const uint8_t* at) noexcept {
    return static_cast<uint32_t>(_mm_crc32_u64(state, load<uint64_t>(at)));
}
uint32_t step1(uint32_t state, uint8_t byte) noexcept {
    return _mm_crc32_u8(state, byte);
}
#elif defined(__ARM_FEATURE_CRC32)
uint32_t step8(uint32_t state, const uint8_t* at) noexcept {
    return __crc32cd(state, load<uint64_t>(at));
}
uint32_t step1(uint32_t state, uint8_t byte) noexcept {
    return __crc32cb(state, byte);
}
#else
constexpr std::array<uint32_t, 256> kByByte = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < table.size(); ++byte) {
        table[byte] = byte;
        for (unsigned bit = 0; bit < 8; ++bit) {
            table[byte] = times_x(table[byte]);
        }
    }
    return table;
}();
uint32_t step1(uint32_t state, uint8_t byte) noexcept {
    return kByByte[(state ^ byte) & 0xff] ^ (state >> 8);
}
uint32_t step8(uint32_t state, const uint8_t* at) noexcept {
    for (unsigned i = 0; i < 8; ++i) {
        state = step1(state, at[i]);
    }
    return state;
}
#endif

}  // namespace

uint32_t crc32c_add(uint32_t state, ByteView bytes) noexcept {
    const uint8_t* at = bytes.data();
    size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) {
        state = step8(state, at);
    }
    for (; left > 0; ++at, --left) {
        state = step1(state, *at);
    }
    return state;
}

uint32_t crc32c_change(uint32_t difference, size_t bytes) noexcept {
    PENSTOCK_ASSERT(bytes >= 4 && bytes <= 0xffff);
    // A CRC multiplies the four bytes, a polynomial below x^32, by x^32; the zeros behind them multiply it by
    // further powers of x.
    return multiply(multiply(difference, kZeros<1>[bytes & 0xff]), kZeros<256>[bytes >> 8]);
}

}  // namespace penstock::packet
