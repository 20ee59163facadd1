// SPDX-License-Identifier: Apache-2.0
// The order in which a pool uses its ports: the blocks in one permutation, the 64 ports of each block in
// another. Both are derived from the pool's keyed hash. Nothing is stored: each position can be computed
// directly. The permutation of the blocks can also be inverted to the position of a block, so that data
// indexed by position can be found from a port.
//
// Blocks: a Feistel network of four rounds over the next power of four, repeated until the result is a valid
// block (cycle walking, Black and Rogaway, 2002). This takes fewer than four steps on average. It is keyed,
// but not a cipher. An observer of a few ports of one pool cannot predict the next ones and gets no
// information about another pool.
#pragma once

#include <bit>
#include <cstdint>

#include "dataplane/nat/port_blocks.hpp"

namespace penstock::nat {

class BlockOrder {
 public:
    constexpr explicit BlockOrder(uint32_t blocks) noexcept
        : blocks_(blocks),
          half_(blocks < 2 ? 0 : (static_cast<uint32_t>(std::bit_width(blocks - 1)) + 1) / 2),
          mask_((1U << half_) - 1) {}

    [[nodiscard]] constexpr uint32_t block_at(uint64_t key, uint32_t place) const noexcept {
        do {
            uint32_t left = place >> half_, right = place & mask_;
            for (uint32_t round = 0; round < kRounds; ++round) {
                const uint32_t next = left ^ scatter(key, round, right);
                left = right;
                right = next;
            }
            place = left << half_ | right;
        } while (place >= blocks_);
        return place;
    }
    [[nodiscard]] constexpr uint32_t place_of(uint64_t key, uint32_t block) const noexcept {
        do {
            uint32_t left = block >> half_, right = block & mask_;
            for (uint32_t round = kRounds; round-- > 0;) {
                const uint32_t before = right ^ scatter(key, round, left);
                right = left;
                left = before;
            }
            block = left << half_ | right;
        } while (block >= blocks_);
        return block;
    }

 private:
    static constexpr uint32_t kRounds = 4;
    // The multipliers are odd and of even bit density: 2^64 over the golden ratio (Knuth 6.4), and that of
    // rrmxmx.
    [[nodiscard]] constexpr uint32_t scatter(uint64_t key, uint32_t round, uint32_t half) const noexcept {
        uint64_t mixed = std::rotl(key, static_cast<int>(round * 16)) ^ (half + 1) * 0x9e3779b97f4a7c15ULL;
        mixed = (mixed ^ mixed >> 32) * 0x9fb21c651e98df25ULL;
        return static_cast<uint32_t>(mixed >> 48) & mask_;
    }

    uint32_t blocks_;
    uint32_t half_;  // bits of each half
    uint32_t mask_;
};

// The ports of one block: two steps of a linear congruential generator with a shift between them. Each step
// is invertible.
class PortOrder {
 public:
    static constexpr uint32_t kKeyBits = 22;
    // Uses the low kKeyBits of the key.
    constexpr explicit PortOrder(uint32_t key) noexcept
        : first_(key << 1 | 1), offset_(key >> 5), second_(key >> 10 | 1), last_(key >> 16) {}
    [[nodiscard]] constexpr uint32_t port_at(uint32_t place) const noexcept {
        uint32_t port = (place * first_ + offset_) % kPortsPerBlock;
        port ^= port >> 3;
        return (port * second_ + last_) % kPortsPerBlock;
    }

 private:
    uint32_t first_, offset_, second_, last_;
};

}  // namespace penstock::nat
