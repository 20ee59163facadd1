// SPDX-License-Identifier: Apache-2.0
// A sorted map with copies that share their common parts. It behaves as a std::map, but copies cheaply: a
// copy copies one pointer for about forty entries, and a change creates one block of entries anew. The
// reconciler can therefore pass a whole state to a reader, or to the saver of the last good configuration,
// with every change.
//
//   blocks  | * | * | * |        each block: up to kEntriesMax entries, sorted; the blocks are sorted too
//             |   |   |
//           [..] [..] [..]       entries are shared as well, and never change
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/base/check.hpp"

namespace penstock::gateway {

// Concurrent reads are allowed in any number of threads, each on its own map or on one that is not modified.
template <typename Key, typename Value>
class SharedMap {
    using Entry = std::pair<const Key, Value>;
    using Block = std::vector<std::shared_ptr<const Entry>>;
    static constexpr size_t kEntriesMax = 64;

 public:
    class Iterator {
     public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = Entry;
        using difference_type = std::ptrdiff_t;
        using pointer = const Entry*;
        using reference = const Entry&;

        Iterator() = default;
        reference operator*() const { return *(**block_)[at_]; }
        pointer operator->() const { return (**block_)[at_].get(); }
        Iterator& operator++() {
            if (++at_ == (*block_)->size()) {
                ++block_;
                at_ = 0;
            }
            return *this;
        }
        Iterator operator++(int) {
            Iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const Iterator&) const = default;

     private:
        friend class SharedMap;
        using BlockIterator = typename std::vector<std::shared_ptr<const Block>>::const_iterator;
        Iterator(BlockIterator block, size_t at) : block_(block), at_(at) {}
        BlockIterator block_;
        size_t at_ = 0;
    };
    using value_type = Entry;
    using const_iterator = Iterator;
    using iterator = Iterator;

    [[nodiscard]] size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    // Valid until the map changes.
    [[nodiscard]] Iterator begin() const { return {blocks_.begin(), 0}; }
    [[nodiscard]] Iterator end() const { return {blocks_.end(), 0}; }

    [[nodiscard]] Iterator find(const Key& key) const {
        const Position position = position_of(key);
        return position.is_there
                   ? Iterator{blocks_.begin() + static_cast<std::ptrdiff_t>(position.block), position.at}
                   : end();
    }
    [[nodiscard]] bool contains(const Key& key) const { return position_of(key).is_there; }
    // Null if the key is absent.
    [[nodiscard]] const Value* get(const Key& key) const {
        const Position position = position_of(key);
        return position.is_there ? &(*blocks_[position.block])[position.at]->second : nullptr;
    }
    // The key must be present.
    [[nodiscard]] const Value& at(const Key& key) const {
        const Value* value = get(key);
        PENSTOCK_CHECK(value != nullptr);
        return *value;
    }

    void insert_or_assign(const Key& key, Value value) {
        const Position position = position_of(key);
        auto entry = std::make_shared<const Entry>(key, std::move(value));
        if (blocks_.empty()) {
            blocks_.push_back(std::make_shared<const Block>(Block{std::move(entry)}));
            size_ = 1;
            return;
        }
        Block next;
        next.reserve(blocks_[position.block]->size() + 1);
        next = *blocks_[position.block];
        if (position.is_there) {
            next[position.at] = std::move(entry);
        } else {
            next.insert(next.begin() + static_cast<std::ptrdiff_t>(position.at), std::move(entry));
            ++size_;
        }
        if (next.size() > kEntriesMax) {
            // At the end, where sorted input is appended, the new block starts with one entry, so that the
            // blocks before it stay full.
            const size_t kept = position.block + 1 == blocks_.size() && position.at == kEntriesMax
                                    ? kEntriesMax
                                    : kEntriesMax / 2;
            const auto cut = next.begin() + static_cast<std::ptrdiff_t>(kept);
            blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(position.block) + 1,
                           std::make_shared<const Block>(cut, next.end()));
            next.erase(cut, next.end());
        }
        blocks_[position.block] = std::make_shared<const Block>(std::move(next));
    }
    // The number of entries erased: 0 or 1.
    size_t erase(const Key& key) {
        const Position position = position_of(key);
        if (!position.is_there) {
            return 0;
        }
        --size_;
        if (blocks_[position.block]->size() == 1) {
            blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(position.block));
            return 1;
        }
        Block next = *blocks_[position.block];
        next.erase(next.begin() + static_cast<std::ptrdiff_t>(position.at));
        blocks_[position.block] = std::make_shared<const Block>(std::move(next));
        return 1;
    }
    void clear() {
        blocks_.clear();
        size_ = 0;
    }

 private:
    struct Position {
        // Index of the block that contains the key or would contain it; 0 if there is no block.
        size_t block = 0;
        size_t at = 0;
        bool is_there = false;
    };
    [[nodiscard]] Position position_of(const Key& key) const {
        if (blocks_.empty()) {
            return {};
        }
        // The last block with a first key that is not greater than the key.
        const auto behind = std::ranges::upper_bound(
            blocks_, key, {}, [](const auto& block) -> const Key& { return block->front()->first; });
        const size_t block =
            behind == blocks_.begin() ? 0 : static_cast<size_t>(behind - blocks_.begin()) - 1;
        const Block& entries = *blocks_[block];
        const auto found = std::ranges::lower_bound(
            entries, key, {}, [](const auto& entry) -> const Key& { return entry->first; });
        return {block, static_cast<size_t>(found - entries.begin()),
                found != entries.end() && (*found)->first == key};
    }

    std::vector<std::shared_ptr<const Block>> blocks_;
    size_t size_ = 0;
};

}  // namespace penstock::gateway
