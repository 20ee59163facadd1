// Candidate (c): a line of eight 32-bit tags and eight references; a tag that matches leads to the connection's entry, one line with both
// keys, whole, and the state.
//
//   bucket: tags[8], references[8] { connection, direction } ---> entry: both keys | state
//
// No false match: the key is compared in the entry, which has to be read anyway. IPv6 keeps its longer addresses in a second line of the
// entry.
#pragma once

#include <span>
#include <vector>

#include "dataplane/base/match8.hpp"
#include "perf/micro/candidates/cuckoo.hpp"

namespace penstock::perf::candidates {

class TagBucket {
 public:
    using Key = candidates::Key;
    static constexpr uint32_t kSlots = 8;
    explicit TagBucket(uint32_t connections)
        : buckets_(slots_for(connections * 2) / kSlots + 1),
          lines_(size_t{buckets_} * sizeof(Bucket)),
          entries_(size_t{connections} * sizeof(Entry)) {}
    static Key key(uint32_t number, conn::Direction direction) noexcept { return rte_key(number, direction); }
    [[nodiscard]] size_t bytes() const noexcept { return lines_.bytes() + entries_.bytes(); }

    bool insert(uint32_t slot, uint32_t number) noexcept {
        Entry& entry = entries()[slot];
        entry.key[0] = rte_key(number, conn::Direction::Forward);
        entry.key[1] = rte_key(number, conn::Direction::Reverse);
        return put(entry.key[0], slot << 1) && put(entry.key[1], slot << 1 | 1);
    }
    void erase(uint32_t slot, uint32_t) noexcept {
        for (uint32_t direction = 0; direction < 2; ++direction) {
            const Place place = choose(entries()[slot].key[direction]);
            for (const uint32_t bucket : {place.first, mirrored(place.first, place.tag, buckets_)}) {
                for (uint32_t s = 0; s < kSlots; ++s) {
                    if (lines()[bucket].references[s] == (slot << 1 | direction) + 1) {
                        lines()[bucket].references[s] = 0;
                        lines()[bucket].tags[s] = 0;
                    }
                }
            }
        }
    }

    template <bool kWithState>
    PENSTOCK_NOINLINE uint32_t lookup(std::span<const Key> keys) noexcept {
        std::array<Place, kBurst> place;
        std::array<uint32_t, kBurst> reference;
        for (uint32_t i = 0; i < kBurst; ++i) {
            place[i] = choose(keys[i]);
            prefetch_read(&lines()[place[i].first]);
        }
        MissList missed;
        for (uint32_t i = 0; i < kBurst; ++i) {
            const Bucket& bucket = lines()[place[i].first];
            const uint32_t bits = match8(bucket.tags, place[i].tag);
            missed.note(i, bits == 0);
            reference[i] = first_of(bucket, bits);
            const void* other = &lines()[mirrored(place[i].first, place[i].tag, buckets_)];
            prefetch_read(bits == 0 ? other : &entries()[reference[i] >> 1]);
        }
        for (const uint32_t i : missed.all()) {
            const Bucket& bucket = lines()[mirrored(place[i].first, place[i].tag, buckets_)];
            reference[i] = first_of(bucket, match8(bucket.tags, place[i].tag));
            prefetch_read(&entries()[reference[i] >> 1]);
        }
        uint32_t hits = 0;
        for (uint32_t i = 0; i < kBurst; ++i) {
            Entry* entry = &entries()[reference[i] >> 1];
            if (!holds(*entry, reference[i] & 1, keys[i])) [[unlikely]] {
                // No such key, or another key's equal tag was met first.
                entry = find_alone(place[i], keys[i]);
            }
            if (entry != nullptr) [[likely]] {
                ++hits;
                if constexpr (kWithState) {
                    entry->state += 1;
                }
            }
        }
        return hits;
    }

    // For make_room().
    [[nodiscard]] bool is_free(uint32_t at) const noexcept {
        return lines()[at / kSlots].references[at % kSlots] == 0;
    }
    [[nodiscard]] uint32_t other_bucket_of(uint32_t at) const noexcept {
        return mirrored(at / kSlots, lines()[at / kSlots].tags[at % kSlots], buckets_);
    }
    void move(uint32_t from, uint32_t to) noexcept {
        set(to, lines()[from / kSlots].tags[from % kSlots], lines()[from / kSlots].references[from % kSlots]);
        set(from, 0, 0);
    }

 private:
    struct alignas(kCacheLine) Bucket {
        uint32_t tags[kSlots];
        uint32_t references[kSlots];  // connection and direction, plus 1; 0: free
    };
    struct alignas(kCacheLine) Entry {
        Key key[2];
        uint64_t state;
    };
    static_assert(sizeof(Bucket) == kCacheLine && sizeof(Entry) == kCacheLine);
    struct Place {
        uint32_t first, tag;
    };

    [[nodiscard]] std::span<Bucket> lines() const noexcept { return lines_.as<Bucket>(); }
    [[nodiscard]] std::span<Entry> entries() const noexcept { return entries_.as<Entry>(); }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE Place choose(const Key& key) const noexcept {
        const uint64_t hash = hash_of(mix_, key);
        return {scaled(static_cast<uint32_t>(hash), buckets_), static_cast<uint32_t>(hash >> 32)};
    }
    // The reference beside the first matching tag; some valid one where none matches. Free slots lead to entry 0.
    [[nodiscard]] static PENSTOCK_ALWAYS_INLINE uint32_t first_of(const Bucket& bucket,
                                                                  uint32_t bits) noexcept {
        const uint32_t reference =
            bucket.references[static_cast<uint32_t>(__builtin_ctz(bits | 1U << (kSlots - 1)))];
        return reference - static_cast<uint32_t>(reference != 0);
    }
    [[nodiscard]] static PENSTOCK_ALWAYS_INLINE bool holds(const Entry& entry, uint32_t direction,
                                                           const Key& key) noexcept {
        const auto held = load<std::array<uint64_t, 2>>(&entry.key[direction]);
        const auto wanted = load<std::array<uint64_t, 2>>(&key);
        return ((held[0] ^ wanted[0]) | (held[1] ^ wanted[1])) == 0;
    }
    [[nodiscard]] PENSTOCK_NOINLINE Entry* find_alone(const Place& place, const Key& key) const noexcept {
        for (const uint32_t bucket : {place.first, mirrored(place.first, place.tag, buckets_)}) {
            for (uint32_t s = 0; s < kSlots; ++s) {
                const uint32_t reference = lines()[bucket].references[s];
                if (lines()[bucket].tags[s] == place.tag && reference != 0 &&
                    holds(entries()[(reference - 1) >> 1], (reference - 1) & 1, key)) {
                    return &entries()[(reference - 1) >> 1];
                }
            }
        }
        return nullptr;
    }
    void set(uint32_t at, uint32_t tag, uint32_t reference) noexcept {
        lines()[at / kSlots].tags[at % kSlots] = tag;
        lines()[at / kSlots].references[at % kSlots] = reference;
    }
    bool put(const Key& key, uint32_t reference) noexcept {
        const Place place = choose(key);
        const uint32_t at = make_room(*this, place.first, mirrored(place.first, place.tag, buckets_));
        if (at == kNone) {
            return false;
        }
        set(at, place.tag, reference + 1);
        return true;
    }

    uint32_t buckets_;
    HugeMemory lines_, entries_;
    KeyedMix mix_{HashKey::random()};
};

}  // namespace penstock::perf::candidates
