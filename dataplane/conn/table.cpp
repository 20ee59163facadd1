// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/table.hpp"

#include <array>
#include <bit>
#include <cstddef>

namespace penstock::conn {
namespace {

using detail::Bucket;
using detail::units_for;
using detail::V6Addresses;

// Entries are copied by whole words, so that readers on other threads see each field whole. may_alias: the
// words are the bytes of an Entry, or addresses.
using Word [[gnu::may_alias]] = uint64_t;
constexpr size_t kUnitWords = sizeof(Entry) / sizeof(Word);

// The contents of a unit without a connection, over the first fields of an Entry. generation keeps its
// position.
struct [[gnu::may_alias]] FreeUnit {
#ifndef PENSTOCK_TEST_TABLE_LAYOUT
    uint32_t generation;
    uint32_t families_and_more;
    uint32_t next;      // unit + 1, or 0
    uint32_t previous;  // in the list of halves only
#else
    uint32_t next;
    uint32_t previous;
    uint32_t generation;
    uint32_t families_and_more;
#endif
};
static_assert(offsetof(FreeUnit, generation) == offsetof(Entry, generation));

void store_word(uint32_t& word, uint32_t value) noexcept {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}
// As bytes, because clang's builtins do not accept an enumeration.
void store_families(KeyFamilies& families, KeyFamilies value) noexcept {
    __atomic_store_n(reinterpret_cast<uint8_t*>(&families), static_cast<uint8_t>(value), __ATOMIC_RELEASE);
}
KeyFamilies load_families(const KeyFamilies& families) noexcept {
    return static_cast<KeyFamilies>(
        __atomic_load_n(reinterpret_cast<const uint8_t*>(&families), __ATOMIC_ACQUIRE));
}

// The copies below are the two halves of a sequence lock without fences. Each word is stored with release
// after the generation became even, and loaded with acquire before the generation is read again. A reader
// that sees one word of a later life therefore also sees its generation. On x86 these are plain moves.
void fill(void* unit, const void* from) noexcept {
    const auto* source = static_cast<const Word*>(from);
    auto* target = static_cast<Word*>(unit);
    for (size_t i = 0; i < kUnitWords; ++i) {
        __atomic_store_n(target + i, source[i], __ATOMIC_RELEASE);
    }
}
void copy_out(void* to, const void* unit) noexcept {
    const auto* source = static_cast<const Word*>(unit);
    auto* target = static_cast<Word*>(to);
    for (size_t i = 0; i < kUnitWords; ++i) {
        target[i] = __atomic_load_n(source + i, __ATOMIC_ACQUIRE);
    }
}

FreeUnit& as_free(Entry& unit) noexcept {
    return reinterpret_cast<FreeUnit&>(unit);
}

packet::FlowKey unpack(const Entry& entry, const V6Addresses& v6, Direction direction) noexcept {
    packet::FlowKey key;
    if (entry.is_v6()) {
        const V6Addresses::OneWay& way = v6.by_direction[static_cast<size_t>(direction)];
        // An IPv4 address of a mixed connection is in mapped form here and in IpAddr.
        key.source = IpAddr::v6(way.source);
        key.destination = IpAddr::v6(way.destination);
    } else {
        key.source = IpAddr::v4(entry.v4_source(direction));
        key.destination = IpAddr::v4(entry.v4_destination(direction));
    }
    key.source_port = entry.source_port(direction);
    key.destination_port = entry.destination_port(direction);
    key.protocol = entry.protocol;
    return key;
}

Connection unpack(const Entry& entry, const V6Addresses& v6) noexcept {
    return {
        .forward = unpack(entry, v6, Direction::Forward),
        .reverse = unpack(entry, v6, Direction::Reverse),
        .last_seen = entry.last_seen,
        .opened_at = entry.opened_at,
        .service = entry.service,
        .backend = entry.backend,
        .snat_pool = entry.snat_pool,
        .l4_delta = entry.l4_delta,
        .ip_delta = entry.ip_delta,
        .state = entry.state,
        .source_kept = entry.source_kept != 0,
        .is_pinned = entry.is_pinned != 0,
        .snat_index = entry.snat_index,
        .tags = entry.tags,
    };
}

KeyFamilies families_of(const Connection& connection) noexcept {
    const bool is_v4 = connection.forward.source.is_v4();
    if (is_v4 != connection.reverse.source.is_v4()) [[unlikely]] {
        return KeyFamilies::Mixed;
    }
    return is_v4 ? KeyFamilies::V4 : KeyFamilies::V6;
}

Entry pack(const Connection& from) noexcept {
    Entry entry{};
    entry.protocol = from.forward.protocol;
    entry.families = families_of(from);
    entry.state = from.state;
    entry.source_kept = from.source_kept;
    entry.is_pinned = from.is_pinned;
    if (!entry.is_v6()) {
        entry.v4_addresses = {packet::v4_addresses(from.forward), packet::v4_addresses(from.reverse)};
    }
    entry.port_pairs = {packet::port_pair(from.forward), packet::port_pair(from.reverse)};
    entry.last_seen = from.last_seen;
    entry.opened_at = from.opened_at;
    entry.service = from.service;
    entry.backend = from.backend;
    entry.snat_pool = from.snat_pool;
    entry.l4_delta = from.l4_delta;
    entry.ip_delta = from.ip_delta;
    entry.snat_index = from.snat_index & 0x3f;
    entry.tags = from.tags;
    return entry;
}

}  // namespace

packet::FlowKey Entry::key(Direction direction) const noexcept {
    return unpack(*this, *reinterpret_cast<const V6Addresses*>(this + 1), direction);
}

Found Table::find_slowly(const packet::FlowKey& key, uint64_t hash) const noexcept {
    return find(key, hash);
}

Connection Table::connection(ConnectionIndex index) const noexcept {
    return unpack(at(index), v6_addresses(index.value));
}

uint64_t Table::hash_of(uint32_t unit, Direction direction) const noexcept {
    const Entry& entry = entries_[unit];
    const size_t at = static_cast<size_t>(direction);
    const uint64_t rest = packet::hashed_rest(entry.port_pairs[at], entry.protocol);
    if (!entry.is_v6()) {
        return mix_.of(entry.v4_addresses[at], rest);
    }
    if (entry.is_mixed()) {
        return packet::hash_of(entry.key(direction), mix_);  // hashed by the family of that key
    }
    const auto words = load<std::array<uint64_t, 4>>(&v6_addresses(unit).by_direction[at]);
    return mix_.of(words[0], words[1], words[2], words[3], rest);
}

// --- Units ---
// A pair is free, half used or used. Free pairs form a stack. The free halves of half-used pairs form a
// doubly linked stack. A half is removed from it when its neighbour is freed too and the pair becomes whole
// again. IPv4 connections take halves first, which keeps pairs for connections that need two units.

uint32_t Table::fresh_pair() noexcept {
    const uint32_t unit = header_->high_water;
    if (unit >= units_for(capacity_)) {
        return kNone;
    }
    __atomic_store_n(&header_->high_water, unit + 2, __ATOMIC_RELEASE);
    return unit;
}

uint32_t Table::take_unit() noexcept {
    if (header_->units_used >= capacity_) {
        return kNone;
    }
    if (header_->free_halves != 0) {
        const uint32_t unit = header_->free_halves - 1;
        remove_half(unit);
        return unit;
    }
    const uint32_t unit = take_pair();
    if (unit != kNone) {
        push_half(unit + 1);
    }
    return unit;
}

uint32_t Table::take_pair() noexcept {
    if (header_->free_pairs == 0) {
        return fresh_pair();
    }
    const uint32_t unit = header_->free_pairs - 1;
    header_->free_pairs = as_free(entries_[unit]).next;
    return unit;
}

void Table::give_back_pair(uint32_t unit) noexcept {
    store_word(as_free(entries_[unit]).next, header_->free_pairs);
    header_->free_pairs = unit + 1;
}

void Table::give_back_unit(uint32_t unit) noexcept {
    const uint32_t neighbour = unit ^ 1;
    if ((entries_[neighbour].generation & 1) != 0) {
        return push_half(unit);
    }
    remove_half(neighbour);
    give_back_pair(unit & ~1U);
}

void Table::push_half(uint32_t unit) noexcept {
    const uint32_t next = header_->free_halves;
    store_word(as_free(entries_[unit]).next, next);
    store_word(as_free(entries_[unit]).previous, 0);
    if (next != 0) {
        store_word(as_free(entries_[next - 1]).previous, unit + 1);
    }
    header_->free_halves = unit + 1;
}

void Table::remove_half(uint32_t unit) noexcept {
    const FreeUnit& half = as_free(entries_[unit]);
    if (half.previous == 0) {
        header_->free_halves = half.next;
    } else {
        store_word(as_free(entries_[half.previous - 1]).next, half.next);
    }
    if (half.next != 0) {
        store_word(as_free(entries_[half.next - 1]).previous, half.previous);
    }
}

// --- Connections ---

bool Table::has_tag(uint64_t hash) const noexcept {
    const uint32_t first = first_bucket(hash);
    const uint32_t tag = tag_of(hash);
    return (match8(buckets_[first].tags, tag) | match8(buckets_[other_bucket(first, tag)].tags, tag)) != 0;
}

bool Table::place(uint64_t hash, uint32_t reference) noexcept {
    const uint32_t first = first_bucket(hash);
    uint32_t at = free_slot(first);
    if (at == kNone) [[unlikely]] {
        const uint32_t second = other_bucket(first, tag_of(hash));
        at = free_slot(second);
        if (at == kNone && (at = make_room(first, second)) == kNone) {
            return false;
        }
    }
    buckets_[at / Bucket::kSlots].set(at % Bucket::kSlots, tag_of(hash), reference);
    return true;
}

Inserted Table::insert(const Connection& connection, uint64_t forward_hash, uint64_t reverse_hash) noexcept {
    // If no slot of a key's two buckets has its tag, which is nearly always the case, there is no entry to
    // compare with.
    if (has_tag(forward_hash) && find_slowly(connection.forward, forward_hash).is_hit()) [[unlikely]] {
        return {InsertStatus::ForwardTaken, {}};
    }
    if ((has_tag(reverse_hash) && find_slowly(connection.reverse, reverse_hash).is_hit()) ||
        (forward_hash == reverse_hash && connection.forward == connection.reverse)) [[unlikely]] {
        return {InsertStatus::ReverseTaken, {}};
    }
    Entry packed = pack(connection);
    PENSTOCK_ASSERT(connection.forward.source.is_v4() == connection.forward.destination.is_v4() &&
                    connection.reverse.source.is_v4() == connection.reverse.destination.is_v4());
    const uint32_t units = packed.is_v6() ? 2 : 1;
    if (header_->units_used + units > capacity_) {
        return {InsertStatus::Full, {}};
    }
    const uint32_t unit = packed.is_v6() ? take_pair() : take_unit();
    if (unit == kNone) {
        return {InsertStatus::Full, {}};
    }
    Entry& entry = entries_[unit];
    if (packed.is_v6()) {
        const std::array<packet::FlowKey, 2> keys{connection.forward, connection.reverse};
        V6Addresses addresses;
        for (size_t direction = 0; direction < 2; ++direction) {
            addresses.by_direction[direction] = {keys[direction].source.bytes(),
                                                 keys[direction].destination.bytes()};
        }
        // read() of the second unit must see that it holds addresses before it can mistake one of them for a
        // generation.
        store_families(entry.families, packed.families);
        fill(&entries_[unit + 1], &addresses);
    }
    packed.generation = entry.generation;  // stays even until the entry is complete
    fill(&entry, &packed);
    const uint32_t reference = unit << 1;
    const bool is_placed = place(forward_hash, reference) && [&] {
        if (place(reverse_hash, reference | 1)) {
            return true;
        }
        clear_slot(forward_hash, reference);
        return false;
    }();
    if (!is_placed) {
        if (packed.is_v6()) {
            __atomic_store_n(&entry.generation, next_life() << 1, __ATOMIC_RELAXED);
            give_back_both(unit);
        } else {
            give_back_unit(unit);
        }
        return {InsertStatus::Full, {}};
    }
    __atomic_store_n(&entry.generation, next_life() << 1 | 1, __ATOMIC_RELEASE);
    __atomic_store_n(&header_->size, header_->size + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&header_->units_used, header_->units_used + units, __ATOMIC_RELAXED);
    return {InsertStatus::Inserted, {unit}};
}

void Table::give_back_both(uint32_t unit) noexcept {
    // The second unit must be marked as one without a connection before read() can treat it as one again.
    store_word(entries_[unit + 1].generation, 0);
    store_families(entries_[unit].families, KeyFamilies::V4);
    give_back_pair(unit);
}

void Table::prefetch_for_erase(ConnectionIndex index) const noexcept {
    prefetch(hash_of(index.value, Direction::Forward));
    prefetch(hash_of(index.value, Direction::Reverse));
}

void Table::erase(ConnectionIndex index) noexcept {
    erase(index, hash_of(index.value, Direction::Forward), hash_of(index.value, Direction::Reverse));
}

void Table::erase(ConnectionIndex index, uint64_t forward_hash, uint64_t reverse_hash) noexcept {
    PENSTOCK_ASSERT(is_live(index.value));
    Entry& entry = entries_[index.value];
    const bool is_v6 = entry.is_v6();
    clear_slot(forward_hash, index.value << 1);
    clear_slot(reverse_hash, index.value << 1 | 1);
    // The release stores of a later fill() order this before their words.
    __atomic_store_n(&entry.generation, entry.generation + 1, __ATOMIC_RELAXED);
    is_v6 ? give_back_both(index.value) : give_back_unit(index.value);
    __atomic_store_n(&header_->size, header_->size - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&header_->units_used, header_->units_used - (is_v6 ? 2 : 1), __ATOMIC_RELAXED);
}

Table::Unit Table::read(uint32_t unit, Connection& out, uint32_t& generation) const noexcept {
    // An entry is replaced at most as often as flows open, and a copy takes nanoseconds, so a second attempt
    // nearly always succeeds.
    constexpr int kTries = 4;
    const Entry& entry = entries_[unit];
    // A second unit holds a connection only while the first one does not occupy both. No two-unit connection
    // may have opened and closed during the copy.
    const Entry& first = entries_[unit & ~1U];
    const auto holds_addresses = [&] {
        return (unit & 1) != 0 && load_families(first.families) >= KeyFamilies::V6;
    };
    for (int i = 0; i < kTries; ++i) {
        const uint32_t first_before = __atomic_load_n(&first.generation, __ATOMIC_ACQUIRE);
        if (holds_addresses()) {
            return Unit::Empty;
        }
        const uint32_t before = __atomic_load_n(&entry.generation, __ATOMIC_ACQUIRE);
        if ((before & 1) == 0) {
            return Unit::Empty;
        }
        Entry copy{};
        copy_out(&copy, &entry);
        V6Addresses addresses{};
        if (copy.is_v6() && (unit & 1) == 0) {
            copy_out(&addresses, &entries_[unit + 1]);
        }
        // The order matters: addresses that were mistaken for an entry must be detected before the number
        // that they resemble is trusted.
        if (!holds_addresses() && __atomic_load_n(&first.generation, __ATOMIC_ACQUIRE) == first_before &&
            __atomic_load_n(&entry.generation, __ATOMIC_RELAXED) == before) {
            out = unpack(copy, addresses);
            generation = before;
            return Unit::Live;
        }
    }
    return Unit::Replaced;
}

// --- Slots ---

void Table::clear_slot(uint64_t hash, uint32_t reference) noexcept {
    uint32_t bucket = first_bucket(hash);
    for (int choice = 0; choice < 2; ++choice) {
        // A free slot keeps its reference, so the tag is compared too.
        const uint32_t at =
            match8(buckets_[bucket].references, reference) & match8(buckets_[bucket].tags, tag_of(hash));
        if (at != 0) {
            store_word(buckets_[bucket].tags[std::countr_zero(at)], 0);
            return;
        }
        bucket = other_bucket(bucket, tag_of(hash));
    }
    PENSTOCK_ASSERT(!"a live connection has both its slots");
}

}  // namespace penstock::conn
