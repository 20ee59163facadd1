// Candidate (b): an entry of 32 bytes for each direction that holds all that a packet of it needs: a keyed 64-bit fingerprint in the key's
// place, the translation, the state, and where the other direction's entry is. Four entries make a bucket of two neighbouring lines,
// because two-choice tables of two slots a bucket do not reach 90 %.
//
//   bucket: 4 x { fingerprint:64 | address, ports | deltas | state, last seen | other direction's slot }
//
// One place in memory a packet. A key that is not in the table matches one of the 8 fingerprints that a lookup compares with probability
// 8 / 2^64 = 4.3e-19 (bucket and fingerprint come of independent halves of the hash): at 10 million such packets a second, once in 7,300
// years. Each change of state writes both entries.
#pragma once

#include <span>
#include <vector>

#include "perf/micro/candidates/cuckoo.hpp"

namespace penstock::perf::candidates {

class Fingerprint {
 public:
    using Key = candidates::Key;
    static constexpr uint32_t kSlots = 4;
    explicit Fingerprint(uint32_t connections)
        : buckets_(slots_for(connections * 2) / kSlots + 1),
          entries_(size_t{buckets_} * sizeof(Entry) * kSlots) {}
    static Key key(uint32_t number, conn::Direction direction) noexcept { return rte_key(number, direction); }
    [[nodiscard]] size_t bytes() const noexcept { return entries_.bytes(); }

    bool insert(uint32_t, uint32_t number) noexcept {
        const Key forward = rte_key(number, conn::Direction::Forward),
                  reverse = rte_key(number, conn::Direction::Reverse);
        const uint32_t one = put(forward, reverse);
        if (one == kNone) {
            return false;
        }
        const uint64_t mark = all()[one].fingerprint;
        const uint32_t two = put(reverse, forward);
        if (two == kNone) {
            return false;
        }
        // Making room for the second may have moved the first.
        const Place place = choose(forward);
        const uint32_t in_first = find_in(place.first, mark);
        const uint32_t now_at =
            in_first != kNone ? in_first
                              : find_in(mirrored(place.first, static_cast<uint32_t>(mark), buckets_), mark);
        all()[now_at].peer = two;
        all()[two].peer = now_at;
        return true;
    }
    void erase(uint32_t, uint32_t number) noexcept {
        const Place place = choose(rte_key(number, conn::Direction::Forward));
        const uint32_t in_first = find_in(place.first, place.fingerprint);
        const uint32_t at =
            in_first != kNone
                ? in_first
                : find_in(mirrored(place.first, static_cast<uint32_t>(place.fingerprint), buckets_),
                          place.fingerprint);
        all()[all()[at].peer] = {};
        all()[at] = {};
    }

    template <bool kWithState>
    PENSTOCK_NOINLINE uint32_t lookup(std::span<const Key> keys) noexcept {
        std::array<Place, kBurst> place;
        std::array<uint32_t, kBurst> at;
        for (uint32_t i = 0; i < kBurst; ++i) {
            place[i] = choose(keys[i]);
            prefetch_bucket(place[i].first);
        }
        MissList missed;
        for (uint32_t i = 0; i < kBurst; ++i) {
            at[i] = find_in(place[i].first, place[i].fingerprint);
            const bool is_miss = at[i] == kNone;
            missed.note(i, is_miss);
            // Where it is no miss the bucket is in cache already.
            const uint32_t other =
                mirrored(place[i].first, static_cast<uint32_t>(place[i].fingerprint), buckets_);
            place[i].first = is_miss ? other : place[i].first;
            prefetch_bucket(place[i].first);
        }
        for (const uint32_t i : missed.all()) {
            at[i] = find_in(place[i].first, place[i].fingerprint);
        }
        uint32_t hits = 0;
        for (uint32_t i = 0; i < kBurst; ++i) {
            if (at[i] != kNone) {
                ++hits;
                if constexpr (kWithState) {
                    all()[at[i]].last_seen += 1;
                }
            }
        }
        return hits;
    }

    // For make_room().
    [[nodiscard]] bool is_free(uint32_t at) const noexcept { return all()[at].fingerprint == 0; }
    [[nodiscard]] uint32_t other_bucket_of(uint32_t at) const noexcept {
        return mirrored(at / kSlots, static_cast<uint32_t>(all()[at].fingerprint), buckets_);
    }
    void move(uint32_t from, uint32_t to) noexcept {
        all()[to] = all()[from];
        all()[from] = {};
        if (all()[to].peer != kNone) {
            all()[all()[to].peer].peer = to;
        }
    }

 private:
    struct Entry {
        uint64_t fingerprint = 0;  // 0: free
        uint32_t address = 0;      // where the packet goes
        uint16_t source_port = 0, destination_port = 0;
        uint32_t deltas = 0;
        uint32_t last_seen = 0;
        uint32_t peer = kNone;
        uint16_t service = 0;
        uint8_t snat_address = 0, state = 0;
    };
    static_assert(sizeof(Entry) == 32);
    struct Place {
        uint64_t fingerprint;
        uint32_t first;
    };

    [[nodiscard]] std::span<Entry> all() const noexcept { return entries_.as<Entry>(); }
    PENSTOCK_ALWAYS_INLINE void prefetch_bucket(uint32_t bucket) const noexcept {
        const auto* line = reinterpret_cast<const std::byte*>(&all()[size_t{bucket} * kSlots]);
        prefetch_read(line);
        prefetch_read(line + kCacheLine);
    }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE Place choose(const Key& key) const noexcept {
        const uint64_t hash = hash_of(mix_, key);
        const uint64_t mark = hash_of(second_mix_, key);
        return {mark == 0 ? 1 : mark, scaled(static_cast<uint32_t>(hash), buckets_)};
    }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t find_in(uint32_t bucket,
                                                          uint64_t fingerprint) const noexcept {
        const Entry* four = &all()[size_t{bucket} * kSlots];
        uint32_t bits = 0;
        for (uint32_t s = 0; s < kSlots; ++s) {
            bits |= static_cast<uint32_t>(four[s].fingerprint == fingerprint) << s;
        }
        return bits == 0 ? kNone : bucket * kSlots + static_cast<uint32_t>(__builtin_ctz(bits));
    }
    [[nodiscard]] uint32_t put(const Key& key, const Key& leaves_as) noexcept {
        const Place place = choose(key);
        const uint32_t at = make_room(
            *this, place.first, mirrored(place.first, static_cast<uint32_t>(place.fingerprint), buckets_));
        if (at != kNone) {
            all()[at] = {.fingerprint = place.fingerprint,
                         .address = leaves_as.source,
                         .source_port = leaves_as.destination_port,
                         .destination_port = leaves_as.source_port};
        }
        return at;
    }

    uint32_t buckets_;
    HugeMemory entries_;
    KeyedMix mix_{HashKey::random()}, second_mix_{HashKey::random()};
};

}  // namespace penstock::perf::candidates
