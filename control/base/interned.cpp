// SPDX-License-Identifier: Apache-2.0
#include "control/base/interned.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>

namespace penstock {

template <typename Value>
struct Interned<Value>::Entry {
    Value value;
    size_t hash = 0;
    // Changes from 1 to 0, and from 0 to 1, only with the pool locked: an entry found there cannot be in
    // removal.
    std::atomic<uint32_t> uses{1};
};

template <typename Value>
class Interned<Value>::Pool {
 public:
    static Pool& instance() {
        static Pool* const pool = new Pool;  // never destroyed: objects with static storage may outlive it
        return *pool;
    }

    Entry* find_or_add(View value) {
        const Wanted wanted{value, hash_of(value)};
        Shard& shard = shard_of(wanted.hash);
        const std::scoped_lock lock(shard.mutex);
        if (const auto found = shard.entries.find(wanted); found != shard.entries.end()) {
            (*found)->uses.fetch_add(1, std::memory_order_relaxed);
            return *found;
        }
        auto entry = std::make_unique<Entry>();
        entry->value = Value(value.begin(), value.end());
        entry->hash = wanted.hash;
        shard.entries.insert(entry.get());
        return entry.release();
    }

    // Releases a use, possibly the last one.
    void release(Entry* entry) noexcept {
        Shard& shard = shard_of(entry->hash);
        const std::scoped_lock lock(shard.mutex);
        // Acquire pairs with the release of the other uses: their reads of the value come before its
        // destruction.
        if (entry->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            shard.entries.erase(entry);
            delete entry;
        }
    }

 private:
    struct Wanted {
        View value;
        size_t hash;
    };
    struct Hash {
        using is_transparent = void;
        size_t operator()(const Entry* entry) const noexcept { return entry->hash; }
        size_t operator()(const Wanted& wanted) const noexcept { return wanted.hash; }
    };
    struct Equal {
        using is_transparent = void;
        bool operator()(const Entry* left, const Entry* right) const noexcept { return left == right; }
        bool operator()(const Wanted& wanted, const Entry* entry) const noexcept {
            return wanted.hash == entry->hash && std::ranges::equal(wanted.value, View(entry->value));
        }
        bool operator()(const Entry* entry, const Wanted& wanted) const noexcept {
            return (*this)(wanted, entry);
        }
    };
    // Threads of gateways release the last uses of objects that the source thread has replaced; with sixteen
    // shards they rarely contend.
    static constexpr size_t kShards = 16;
    struct alignas(64) Shard {
        std::mutex mutex;
        std::unordered_set<Entry*, Hash, Equal> entries;
    };

    static size_t hash_of(std::string_view text) noexcept { return std::hash<std::string_view>()(text); }
    static size_t hash_of(std::span<const std::string> texts) noexcept {
        size_t hash = texts.size();
        for (const std::string& text : texts) {
            hash = hash * 31 + hash_of(text);
        }
        return hash;
    }

    // The set uses the low bits for its buckets, so the shard index uses the high ones.
    Shard& shard_of(size_t hash) noexcept { return shards_[hash >> (8 * sizeof(hash) - 4)]; }

    std::array<Shard, kShards> shards_;
};

template <typename Value>
Interned<Value>::Interned(const Interned& other) noexcept : entry_(other.entry_) {
    if (entry_ != nullptr) {
        // Relaxed: the count is at least 1, because `other` holds the entry.
        entry_->uses.fetch_add(1, std::memory_order_relaxed);
    }
}

template <typename Value>
const Value& Interned<Value>::value() const noexcept {
    static const Value* const empty = new Value;
    return entry_ == nullptr ? *empty : entry_->value;
}

template <typename Value>
typename Interned<Value>::Entry* Interned<Value>::find_or_add(View value) {
    return value.empty() ? nullptr : Pool::instance().find_or_add(value);
}

template <typename Value>
void Interned<Value>::release() noexcept {
    uint32_t uses = entry_->uses.load(std::memory_order_relaxed);
    while (uses > 1) {
        if (entry_->uses.compare_exchange_weak(uses, uses - 1, std::memory_order_release,
                                               std::memory_order_relaxed)) {
            return;
        }
    }
    Pool::instance().release(entry_);
}

template class Interned<std::string>;
template class Interned<std::vector<std::string>>;

}  // namespace penstock
