// SPDX-License-Identifier: Apache-2.0
// SipHash-1-3, a keyed hash for input that an attacker can choose: flow keys, client addresses. The key is
// read at start from the kernel's random source, so that no outsider can aim many flows at one bucket or one
// worker. SipHash-1-3 is the reduced-round form of SipHash (Aumasson and Bernstein, 2012) that programming
// languages use for their hash tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock {

struct HashKey {
    uint64_t k0 = 0;
    uint64_t k1 = 0;
    // 128 bits from getrandom(2). Stops the program if the kernel provides none. Start-up only.
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

// SipHash-1-3 over whole 64-bit words. The last block holds the input's length in bytes, as the algorithm
// requires.
template <size_t kWords>
[[nodiscard]] constexpr uint64_t siphash13(const HashKey& key,
                                           const std::array<uint64_t, kWords>& words) noexcept {
    detail::SipState s{key.k0 ^ 0x736f6d6570736575ULL, key.k1 ^ 0x646f72616e646f6dULL,
                       key.k0 ^ 0x6c7967656e657261ULL, key.k1 ^ 0x7465646279746573ULL};
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

// A faster keyed hash for look-ups that are made once per packet: folded products of 64 x 64 bits, each input
// word blinded by a secret word of its own. It is the family of wyhash, with six secret words in place of
// public constants. Whether two keys collide depends on the secret (see table_test). An attacker neither has
// the secret nor sees any output of the hash. KeyedMix is not a pseudo-random function. Of the values that
// leave the gateway, only SNAT ports depend on it, each as one position in a keyed order
// (nat/port_order.hpp).
class KeyedMix {
 public:
    KeyedMix() = default;
    explicit constexpr KeyedMix(const HashKey& key) noexcept {
        for (uint64_t i = 0; i < secret_.size(); ++i) {
            secret_[i] = siphash13<1>(key, {i});
        }
    }
    [[nodiscard]] constexpr uint64_t of(uint64_t a, uint64_t b) const noexcept {
        return fold(fold(a ^ secret_[0], b ^ secret_[1]) ^ secret_[4], secret_[5]);
    }
    [[nodiscard]] constexpr uint64_t of(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                        uint64_t e) const noexcept {
        return fold(fold(a ^ secret_[0], b ^ secret_[1]) ^ fold(c ^ secret_[2], d ^ secret_[3]) ^ secret_[4],
                    e ^ secret_[5]);
    }

 private:
    static constexpr uint64_t fold(uint64_t a, uint64_t b) noexcept {
        __extension__ using Product = unsigned __int128;
        const Product product = Product{a} * b;
        return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }
    std::array<uint64_t, 6> secret_{};
};

}  // namespace penstock
