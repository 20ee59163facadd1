#include "dataplane/conn/table.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace penstock::conn {
namespace {

using detail::Bucket;
using detail::Entry;
using detail::Header;
using detail::Word;

constexpr size_t kConnectionWords = sizeof(Connection) / sizeof(Word);

// Two slots a connection, at most 80 % full: a bounded search finds room up to about 95 % (Fan et al. 2014, table 2, for buckets of eight).
// A power of two, as other_bucket() wants.
uint32_t buckets_for(uint32_t capacity) {
    const uint64_t slots = (uint64_t{capacity} * 2 * 10 + 7) / 8;
    return static_cast<uint32_t>(std::bit_ceil((slots + Bucket::kSlots - 1) / Bucket::kSlots));
}

// The copies below are the two halves of a sequence lock that needs no fence. Each word is stored with release after the generation turned
// even, and loaded with acquire before the generation is read again: a reader that met one word of a later life also meets its generation.
// On x86 these are plain moves.
void fill(Connection& entry, const Connection& from) noexcept {
    const auto* source = reinterpret_cast<const Word*>(&from);
    auto* target = reinterpret_cast<Word*>(&entry);
    for (size_t i = 0; i < kConnectionWords; ++i) {
        __atomic_store_n(target + i, source[i], __ATOMIC_RELEASE);
    }
}
void copy_out(Connection& to, const Connection& entry) noexcept {
    const auto* source = reinterpret_cast<const Word*>(&entry);
    auto* target = reinterpret_cast<Word*>(&to);
    for (size_t i = 0; i < kConnectionWords; ++i) {
        target[i] = __atomic_load_n(source + i, __ATOMIC_ACQUIRE);
    }
}

}  // namespace

size_t Table::memory_needed(uint32_t capacity) noexcept {
    if (capacity == 0 || capacity > kCapacityMax) {
        return 0;
    }
    return sizeof(Header) + buckets_for(capacity) * sizeof(Bucket) + capacity * sizeof(Entry);
}

Table::Table(std::span<std::byte> memory, uint32_t capacity) noexcept
    : header_(reinterpret_cast<Header*>(memory.data())),
      buckets_(reinterpret_cast<Bucket*>(memory.data() + sizeof(Header))),
      entries_(reinterpret_cast<Entry*>(memory.data() + sizeof(Header) + buckets_for(capacity) * sizeof(Bucket))),
      bucket_mask_(buckets_for(capacity) - 1),
      capacity_(capacity),
      secret_(header_->secret) {}

Result<Table> Table::create(std::span<std::byte> memory, uint32_t capacity, const HashKey& secret) {
    const size_t needed = memory_needed(capacity);
    if (needed == 0) {
        return fail(Errc::InvalidArgument,
                    "connection table: capacity " + std::to_string(capacity) + " is not between 1 and " + std::to_string(kCapacityMax));
    }
    if (memory.size() < needed || reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::InvalidArgument, "connection table: " + std::to_string(capacity) + " connections need " + std::to_string(needed) +
                                               " bytes from the start of a cache line");
    }
    std::memset(memory.data(), 0, needed);
    auto* header = reinterpret_cast<Header*>(memory.data());
    header->magic = Header::kMagic;
    header->version = Header::kVersion;
    header->capacity = capacity;
    header->buckets = buckets_for(capacity);
    header->secret = secret;
    return Table(memory, capacity);
}

Result<Table> Table::adopt(std::span<std::byte> memory) {
    if (memory.size() < sizeof(Header) || reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::Corrupt, "connection table: no header at the start of a cache line");
    }
    const auto header = load<Header>(memory.data());
    if (header.magic != Header::kMagic || header.version != Header::kVersion) {
        return fail(Errc::Corrupt, "connection table: the memory holds no table of layout version " + std::to_string(Header::kVersion));
    }
    const size_t needed = memory_needed(header.capacity);
    if (needed == 0 || memory.size() < needed || header.buckets != buckets_for(header.capacity) || header.size > header.high_water ||
        header.high_water > header.capacity) {
        return fail(Errc::Corrupt,
                    "connection table: the header contradicts itself or the memory's " + std::to_string(memory.size()) + " bytes");
    }
    return Table(memory, header.capacity);
}

Inserted Table::insert(const Connection& entry, uint64_t forward_hash, uint64_t reverse_hash) noexcept {
    if (find(entry.forward, forward_hash).is_hit()) {
        return {InsertStatus::ForwardTaken, {}};
    }
    if (find(entry.reverse, reverse_hash).is_hit() || entry.forward == entry.reverse) {
        return {InsertStatus::ReverseTaken, {}};
    }
    const bool reuses = header_->free_head != 0;
    if (!reuses && header_->high_water == capacity_) {
        return {InsertStatus::Full, {}};
    }
    const uint32_t index = reuses ? header_->free_head - 1 : header_->high_water;
    Entry& slot = entries_[index];
    const uint32_t next_free = slot.next_free;
    fill(slot.connection, entry);
    if (!place(forward_hash, index, Direction::Forward)) {
        return {InsertStatus::Full, {}};
    }
    if (!place(reverse_hash, index, Direction::Reverse)) {
        set_slot(slot.slot_at[static_cast<size_t>(Direction::Forward)], 0);
        return {InsertStatus::Full, {}};
    }
    // Pairs with the acquire load in read(): whoever sees the odd number sees the words.
    __atomic_store_n(&slot.generation, slot.generation + 1, __ATOMIC_RELEASE);
    if (reuses) {
        header_->free_head = next_free;
    } else {
        // Pairs with high_water(): whoever stops there has seen every entry that was live before.
        __atomic_store_n(&header_->high_water, index + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&header_->size, header_->size + 1, __ATOMIC_RELAXED);
    return {InsertStatus::Inserted, {index}};
}

void Table::erase(ConnectionIndex index) noexcept {
    PENSTOCK_ASSERT(is_live(index.value));
    Entry& entry = entries_[index.value];
    for (const uint32_t at : entry.slot_at) {
        set_slot(at, 0);
    }
    // The release stores of a later fill() order this before their words.
    __atomic_store_n(&entry.generation, entry.generation + 1, __ATOMIC_RELAXED);
    entry.next_free = header_->free_head;
    header_->free_head = index.value + 1;
    __atomic_store_n(&header_->size, header_->size - 1, __ATOMIC_RELAXED);
}

bool Table::read(uint32_t slot, Connection& out) const noexcept {
    // An entry is replaced at most as often as a flow opens, and a copy takes nanoseconds: a second try nearly always succeeds.
    constexpr int kTries = 4;
    const Entry& entry = entries_[slot];
    for (int i = 0; i < kTries; ++i) {
        const uint32_t before = __atomic_load_n(&entry.generation, __ATOMIC_ACQUIRE);
        if ((before & 1) == 0) {
            return false;
        }
        copy_out(out, entry.connection);
        if (__atomic_load_n(&entry.generation, __ATOMIC_RELAXED) == before) {
            return true;
        }
    }
    return false;
}

void Table::set_slot(uint32_t at, uint64_t slot) noexcept {
    buckets_[at / Bucket::kSlots].slots[at % Bucket::kSlots] = slot;
    if (slot != 0) {
        entries_[index_in(slot)].slot_at[static_cast<size_t>(direction_in(slot))] = at;
    }
}

uint32_t Table::free_slot(uint32_t bucket) const noexcept {
    const uint64_t(&slots)[Bucket::kSlots] = buckets_[bucket].slots;
    for (uint32_t i = 0; i < Bucket::kSlots; ++i) {
        if (slots[i] == 0) {
            return bucket * Bucket::kSlots + i;
        }
    }
    return kNoSlot;
}

bool Table::place(uint64_t hash, uint32_t index, Direction direction) noexcept {
    const uint32_t first = first_bucket(hash);
    const uint32_t second = other_bucket(first, tag_of(hash));
    uint32_t at = free_slot(first);
    if (at == kNoSlot) {
        at = free_slot(second);
    }
    if (at == kNoSlot) {
        at = make_room(first, second);
    }
    if (at == kNoSlot) {
        return false;
    }
    set_slot(at, make_slot(tag_of(hash), index, direction));
    return true;
}

// Breadth first over "bucket, reached by moving the slot that its parent holds": finds a shortest chain of moves that ends in a free slot,
// and makes them from its end, so that every key can be found at every moment. Costs kSearchNodes bucket reads at most.
uint32_t Table::make_room(uint32_t first, uint32_t second) noexcept {
    struct Node {
        uint32_t bucket;
        uint16_t parent;  // index in `nodes`; its own for the two roots
        uint8_t slot;     // of the parent's bucket: what moves here
        uint8_t depth;
    };
    Node nodes[kSearchNodes];
    uint32_t count = 0;
    nodes[count++] = {first, 0, 0, 0};
    nodes[count++] = {second, 1, 0, 0};
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t hole = i < 2 ? kNoSlot : free_slot(nodes[i].bucket);
        if (hole != kNoSlot) {
            for (uint32_t at = i; nodes[at].depth > 0; at = nodes[at].parent) {
                const uint32_t from = nodes[nodes[at].parent].bucket * Bucket::kSlots + nodes[at].slot;
                set_slot(hole, buckets_[from / Bucket::kSlots].slots[from % Bucket::kSlots]);
                hole = from;  // still holds what moved until the next move, or place(), fills it
            }
            return hole;
        }
        if (nodes[i].depth == kMovesMax) {
            continue;
        }
        for (uint32_t slot = 0; slot < Bucket::kSlots && count < kSearchNodes; ++slot) {
            const uint64_t held = buckets_[nodes[i].bucket].slots[slot];
            const uint32_t bucket = other_bucket(nodes[i].bucket, tag_in(held));
            // Back to where the chain came from would move one slot twice.
            bool is_on_path = bucket == nodes[i].bucket;
            for (uint32_t at = i; !is_on_path && nodes[at].depth > 0; at = nodes[at].parent) {
                is_on_path = bucket == nodes[nodes[at].parent].bucket;
            }
            if (!is_on_path) {
                nodes[count++] = {bucket, static_cast<uint16_t>(i), static_cast<uint8_t>(slot), static_cast<uint8_t>(nodes[i].depth + 1)};
            }
        }
    }
    return kNoSlot;
}

}  // namespace penstock::conn
