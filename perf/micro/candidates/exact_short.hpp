// Candidate (a): a line of four entries of 16 bytes, each an IPv4 five-tuple whole (12 bytes and 2 bits of protocol) and the number of its
// connection; compared by vector instructions. The state is in a line of its own, one a connection.
//
//   bucket: 4 x { source, destination, ports, connection:28 | direction:1 | protocol:2 | live:1 } ---> state line
//
// No false match. IPv6 tuples do not fit and would need a table of another shape.
#pragma once

#include <span>
#include <vector>

#include "perf/micro/candidates/cuckoo.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace penstock::perf::candidates {

class ExactShort {
 public:
    using Key = candidates::Key;
    static constexpr uint32_t kSlots = 4;
    explicit ExactShort(uint32_t connections)
        : buckets_(slots_for(connections * 2) / kSlots + 1),
          entries_(size_t{buckets_} * kCacheLine),
          states_(size_t{connections} * kCacheLine) {}
    static Key key(uint32_t number, conn::Direction direction) noexcept { return rte_key(number, direction); }
    [[nodiscard]] size_t bytes() const noexcept { return entries_.bytes() + states_.bytes(); }

    bool insert(uint32_t slot, uint32_t number) noexcept {
        return put(rte_key(number, conn::Direction::Forward), slot << 1) &&
               put(rte_key(number, conn::Direction::Reverse), slot << 1 | 1);
    }
    void erase(uint32_t, uint32_t number) noexcept {
        for (const auto direction : {conn::Direction::Forward, conn::Direction::Reverse}) {
            const Key key = rte_key(number, direction);
            const Choice choice = choose(key);
            const uint32_t in_first = find_in(choice.first, key);
            all()[in_first != kNone ? in_first : find_in(choice.second, key)] = {};
        }
    }

    template <bool kWithState>
    PENSTOCK_NOINLINE uint32_t lookup(std::span<const Key> keys) noexcept {
        std::array<Choice, kBurst> choice;
        std::array<uint32_t, kBurst> at;
        for (uint32_t i = 0; i < kBurst; ++i) {
            choice[i] = choose(keys[i]);
            prefetch_read(&all()[choice[i].first * kSlots]);
        }
        MissList missed;
        for (uint32_t i = 0; i < kBurst; ++i) {
            at[i] = find_in(choice[i].first, keys[i]);
            const bool is_miss = at[i] == kNone;
            missed.note(i, is_miss);
            const void* state = &states()[reference_in(is_miss ? 0 : at[i]) >> 1];
            prefetch_read(is_miss ? static_cast<const void*>(&all()[choice[i].second * kSlots]) : state);
        }
        for (const uint32_t i : missed.all()) {
            at[i] = find_in(choice[i].second, keys[i]);
            prefetch_read(&states()[reference_in(at[i] == kNone ? 0 : at[i]) >> 1]);
        }
        uint32_t hits = 0;
        for (uint32_t i = 0; i < kBurst; ++i) {
            if (at[i] != kNone) {
                ++hits;
                if constexpr (kWithState) {
                    states()[reference_in(at[i]) >> 1].words[0] += 1;
                }
            }
        }
        return hits;
    }

    // For make_room().
    [[nodiscard]] bool is_free(uint32_t at) const noexcept { return all()[at].word == 0; }
    [[nodiscard]] uint32_t other_bucket_of(uint32_t at) const noexcept {
        const Entry& e = all()[at];
        const Choice choice = choose({e.source, e.destination, static_cast<uint16_t>(e.ports),
                                      static_cast<uint16_t>(e.ports >> 16), e.word >> 30});
        return at / kSlots == choice.first ? choice.second : choice.first;
    }
    void move(uint32_t from, uint32_t to) noexcept {
        all()[to] = all()[from];
        all()[from] = {};
    }

 private:
    struct alignas(16) Entry {
        uint32_t source = 0, destination = 0, ports = 0;
        uint32_t word = 0;  // from the lowest bit: live, reference (connection and direction), protocol
    };
    static constexpr uint32_t kCompared = 3U << 30 | 1;
    struct Choice {
        uint32_t first, second;
    };

    [[nodiscard]] std::span<Entry> all() const noexcept { return entries_.as<Entry>(); }
    [[nodiscard]] std::span<StateLine> states() const noexcept { return states_.as<StateLine>(); }
    [[nodiscard]] uint32_t reference_in(uint32_t at) const noexcept {
        return (all()[at].word & ~kCompared) >> 1;
    }
    static Entry entry_of(const Key& key) noexcept {
        // Two bits tell the protocols apart that have ports here; TCP (6) and UDP (17) differ in them.
        return {key.source, key.destination, key.source_port | uint32_t{key.destination_port} << 16,
                key.protocol << 30 | 1};
    }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE Choice choose(const Key& key) const noexcept {
        Key folded = key;
        folded.protocol &= 3;
        const uint64_t hash = hash_of(mix_, folded);
        return {scaled(static_cast<uint32_t>(hash), buckets_),
                scaled(static_cast<uint32_t>(hash >> 32), buckets_)};
    }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t find_in(uint32_t bucket, const Key& key) const noexcept {
        const Entry* line = &all()[bucket * kSlots];
        const Entry wanted = entry_of(key);
#if defined(__AVX512F__)
        const __m512i four = _mm512_load_si512(line);
        const __m512i key4 =
            _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(&wanted)));
        const __m512i compared =
            _mm512_broadcast_i32x4(_mm_set_epi32(static_cast<int>(kCompared), -1, -1, -1));
        const uint32_t differ = _mm512_test_epi32_mask(_mm512_xor_si512(four, key4), compared);
        uint32_t bits = 0;
        for (uint32_t s = 0; s < kSlots; ++s) {
            bits |= static_cast<uint32_t>((differ >> 4 * s & 15) == 0) << s;
        }
#elif defined(__SSE4_1__)
        const __m128i one = _mm_load_si128(reinterpret_cast<const __m128i*>(&wanted));
        const __m128i compared = _mm_set_epi32(static_cast<int>(kCompared), -1, -1, -1);
        uint32_t bits = 0;
        for (uint32_t s = 0; s < kSlots; ++s) {
            const __m128i differ =
                _mm_xor_si128(_mm_load_si128(reinterpret_cast<const __m128i*>(line + s)), one);
            bits |= static_cast<uint32_t>(_mm_testz_si128(differ, compared)) << s;
        }
#else
        uint32_t bits = 0;
        for (uint32_t s = 0; s < kSlots; ++s) {
            const uint32_t differ =
                (line[s].source ^ wanted.source) | (line[s].destination ^ wanted.destination) |
                (line[s].ports ^ wanted.ports) | ((line[s].word ^ wanted.word) & kCompared);
            bits |= static_cast<uint32_t>(differ == 0) << s;
        }
#endif
        return bits == 0 ? kNone : bucket * kSlots + static_cast<uint32_t>(__builtin_ctz(bits));
    }
    bool put(const Key& key, uint32_t reference) noexcept {
        const Choice choice = choose(key);
        const uint32_t at = make_room(*this, choice.first, choice.second);
        if (at == kNone) {
            return false;
        }
        all()[at] = entry_of(key);
        all()[at].word |= reference << 1;
        return true;
    }

    uint32_t buckets_;
    HugeMemory entries_, states_;
    KeyedMix mix_{HashKey::random()};
};

}  // namespace penstock::perf::candidates
