// A keyed hash for whatever an attacker may choose the input of: flow keys, client addresses. The key is drawn at start from the
// kernel's random source, so that nobody outside can aim many flows at one bucket or one worker. SipHash-1-3 (Aumasson and Bernstein,
// 2012), the reduced-round form that languages use for their hash tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock {

struct HashKey {
    uint64_t k0 = 0;
    uint64_t k1 = 0;
    // 128 bits from getrandom(2); stops the program where the kernel has none. Start-up only.
    static HashKey random();
};

namespace detail {
struct SipState {
    uint64_t v0, v1, v2, v3;
    constexpr void round() noexcept {
        v0 += v1;
        v1 = (v1 << 13) | (v1 >> 51);
        v1 ^= v0;
        v0 = (v0 << 32) | (v0 >> 32);
        v2 += v3;
        v3 = (v3 << 16) | (v3 >> 48);
        v3 ^= v2;
        v0 += v3;
        v3 = (v3 << 21) | (v3 >> 43);
        v3 ^= v0;
        v2 += v1;
        v1 = (v1 << 17) | (v1 >> 47);
        v1 ^= v2;
        v2 = (v2 << 32) | (v2 >> 32);
    }
};
}  // namespace detail

// SipHash-1-3 over whole 64-bit words. `length_bytes` enters the last block as the algorithm asks; keys here have a fixed length, so
// it only separates domains (a client address from a flow key).
template <size_t kWords>
[[nodiscard]] constexpr uint64_t siphash13(const HashKey& key, const std::array<uint64_t, kWords>& words) noexcept {
    detail::SipState s{key.k0 ^ 0x736f6d6570736575ULL, key.k1 ^ 0x646f72616e646f6dULL, key.k0 ^ 0x6c7967656e657261ULL,
                       key.k1 ^ 0x7465646279746573ULL};
    for (const uint64_t word : words) {
        s.v3 ^= word;
        s.round();
        s.v0 ^= word;
    }
    const uint64_t last = (uint64_t{kWords * 8} & 0xff) << 56;
    s.v3 ^= last;
    s.round();
    s.v0 ^= last;
    s.v2 ^= 0xff;
    s.round();
    s.round();
    s.round();
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

}  // namespace penstock
