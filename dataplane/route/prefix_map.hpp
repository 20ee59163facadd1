// SPDX-License-Identifier: Apache-2.0
// Longest prefix match per packet: the intervals of one family (intervals.hpp) in the structure with the
// fastest look-up.
//
//   IPv4, few:    one search tree over 32 bits: the usual ten routes and neighbours of a gateway fit into
//                 one or two cache lines
//   IPv4, many:   16 bits of the address index an array, 256 KiB, of answers and of trees over the other
//                 16 bits (after DXR: Zec, Rizzo, Mikuc, 2012). A full Internet table costs one line of the
//                 array and mostly one of its tree
//   IPv6:         a tree over the first 64 bits, which decide nearly everything, since subnets are /64. If
//                 routes or neighbours are inside a /64, the answer is a second tree, over the other 64 bits
//
// The size does not depend on the length of prefixes. The table, which is rebuilt for every change of a
// neighbour, thus avoids the 16 million entries of DIR-24-8.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/route/intervals.hpp"
#include "dataplane/route/search_tree.hpp"

namespace penstock::route {

// An IPv6 address as a number (__extension__: ISO C++ has no integer of this width, GCC and clang do).
__extension__ using Uint128 = unsigned __int128;

class PrefixMap4 {
 public:
    PrefixMap4() = default;  // Intervals::kNone everywhere
    explicit PrefixMap4(const Intervals<uint32_t>& intervals);

    // The answer for `address`, in host order.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t find(uint32_t address) const noexcept {
        if (by_top_.empty()) {
            return (root_.is_tree() ? wide_.find(root_, address) : root_).answer();
        }
        const TreeRef chunk = by_top_[address >> 16];
        return (chunk.is_tree() ? chunks_.find(chunk, static_cast<uint16_t>(address)) : chunk).answer();
    }
    // Prefetches the first read of find(). Worth a separate pass if many prefixes make the array compete for
    // the cache.
    PENSTOCK_ALWAYS_INLINE void prefetch(uint32_t address) const noexcept {
        if (!by_top_.empty()) {
            prefetch_read(&by_top_[address >> 16]);
        }
    }

    // Up to this number of intervals one tree of three levels is smaller and faster.
    static constexpr size_t kOneTreeMax = 16 * 16 * 16;

 private:
    TreeRef root_;
    SearchForest<uint32_t> wide_;
    std::vector<TreeRef> by_top_;  // empty, or 65,536
    SearchForest<uint16_t> chunks_;
};

class PrefixMap6 {
 public:
    PrefixMap6() = default;
    explicit PrefixMap6(const Intervals<Uint128>& intervals);

    // The answer for the address with bytes 0..7 and 8..15 equal to these numbers, in host order.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t find(uint64_t high, uint64_t low) const noexcept {
        TreeRef at = root_.is_tree() ? forest_.find(root_, high) : root_;
        if (at.is_tree()) {
            at = forest_.find(at, low);
        }
        return at.answer();
    }

    // Up to this number of pieces of first halves, all second trees have the same depth. Packets to clients
    // and to backends on the link alternate randomly. A branch on whether a second tree is needed would be
    // mispredicted every other time, which costs more than one level.
    static constexpr size_t kEvenMax = 512;

 private:
    TreeRef root_;
    SearchForest<uint64_t> forest_;
};

}  // namespace penstock::route
