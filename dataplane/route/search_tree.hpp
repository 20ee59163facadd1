// SPDX-License-Identifier: Apache-2.0
// Finds the interval of a number in a sorted list: static search trees with nodes of one cache line, searched
// without a branch on the data.
//
//   node:   | last[0] | last[1] | ... | last[k-1] | first_child |   k = 30, 15 or 7 keys of 16, 32 or 64 bits
//
// The child to follow is first_child + (the number of last[i] before the key). The k comparisons are done at
// once by vector instructions, without a mispredicted branch. No pointers are needed, since the children of a
// node are adjacent. The answers are below the lowest nodes.
//
// 15 intervals of IPv4 cost one line and one step, 255 two, 65,535 four. A binary search reads as many lines
// from the third step on, and each of its steps waits for the one before. Trees share one pair of arrays,
// because a large table holds tens of thousands of small ones. Immutable once built.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/route/line_rank.hpp"

namespace penstock::route {

// An answer, or the tree with the answers.
class TreeRef {
 public:
    static constexpr uint32_t kNodesMax = uint32_t{1} << 27;

    constexpr TreeRef() = default;
    static constexpr TreeRef answer(uint32_t answer) noexcept { return TreeRef(answer); }
    static constexpr TreeRef tree(uint32_t node, uint32_t depth) noexcept {
        return TreeRef(kTree | depth << 27 | node);
    }

    [[nodiscard]] constexpr bool is_tree() const noexcept { return (bits_ & kTree) != 0; }
    [[nodiscard]] constexpr uint32_t answer() const noexcept { return bits_; }
    [[nodiscard]] constexpr uint32_t node() const noexcept { return bits_ & (kNodesMax - 1); }
    // Levels of nodes; 8^15 intervals are enough.
    [[nodiscard]] constexpr uint32_t depth() const noexcept { return (bits_ >> 27) & 15; }
    constexpr bool operator==(const TreeRef&) const = default;

 private:
    static constexpr uint32_t kTree = uint32_t{1} << 31;
    constexpr explicit TreeRef(uint32_t bits) noexcept : bits_(bits) {}
    uint32_t bits_ = 0;
};

// `Key` is uint16_t, uint32_t or uint64_t.
template <typename Key>
class SearchForest {
 public:
    // The numbers after the previous piece, up to `last`.
    struct Piece {
        Key last;
        TreeRef answer;
    };

    // Pieces are in ascending order, and the last one includes the largest number. A single piece needs no
    // tree; `depth_min` forces one, so that all trees of a table can have the same depth.
    TreeRef add(std::span<const Piece> pieces, uint32_t depth_min = 0) {
        PENSTOCK_CHECK(!pieces.empty() && pieces.back().last == std::numeric_limits<Key>::max());
        if (pieces.size() == 1 && depth_min == 0) {
            return pieces.front().answer;
        }
        auto first_child = static_cast<uint32_t>(answers_.size());
        std::vector<Key> lasts;
        lasts.reserve(pieces.size());
        for (const Piece& piece : pieces) {
            answers_.push_back(piece.answer);
            lasts.push_back(piece.last);
        }
        uint32_t depth = 0;
        do {
            const auto first_node = static_cast<uint32_t>(nodes_.size());
            std::vector<Key> above;
            for (size_t i = 0; i < lasts.size(); i += kChildren) {
                const std::span children = std::span(lasts).subspan(i, std::min(kChildren, lasts.size() - i));
                nodes_.push_back(Node(children, first_child + static_cast<uint32_t>(i)));
                above.push_back(children.back());
            }
            lasts = std::move(above);
            first_child = first_node;
            ++depth;
        } while (lasts.size() > 1 || depth < depth_min);
        PENSTOCK_CHECK(nodes_.size() <= TreeRef::kNodesMax);
        return TreeRef::tree(first_child, depth);
    }

    // The depth of a tree over this number of pieces.
    [[nodiscard]] static uint32_t depth_of(size_t pieces) noexcept {
        uint32_t depth = 0;
        for (; pieces > 1; ++depth) {
            pieces = (pieces + kChildren - 1) / kChildren;
        }
        return depth;
    }

    // The answer in `tree`, which must be a tree, for `key`.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE TreeRef find(TreeRef tree, Key key) const noexcept {
        uint32_t at = tree.node();
        for (uint32_t depth = tree.depth(); depth != 0; --depth) {
            at = nodes_[at].child_of(key);
        }
        return answers_[at];
    }

    // Prefetches the first node that find() reads.
    void prefetch(TreeRef tree) const noexcept { prefetch_read(&nodes_[tree.node()]); }

 private:
    using Rank = LineRank<Key>;
    static constexpr size_t kChildren = Rank::kKeys + 1;

    struct alignas(kCacheLine) Node {
        // The `last` of each child except the last one. Unused entries hold the largest number, which is
        // before no key.
        std::array<typename Rank::Stored, Rank::kKeys> last;
        uint32_t first_child;

        Node(std::span<const Key> children, uint32_t first) : first_child(first) {
            last.fill(Rank::stored(std::numeric_limits<Key>::max()));
            for (size_t i = 0; i + 1 < children.size(); ++i) {
                last[i] = Rank::stored(children[i]);
            }
        }
        [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t child_of(Key key) const noexcept {
            return first_child + Rank::count_before(last.data(), key);
        }
    };
    static_assert(sizeof(Node) == kCacheLine);

    std::vector<Node> nodes_;
    std::vector<TreeRef> answers_;
};

}  // namespace penstock::route
