// SPDX-License-Identifier: Apache-2.0
#include "dataplane/copies/store.hpp"

#include <new>
#include <span>
#include <string>
#include <utility>

#include "dataplane/base/cpu.hpp"

namespace penstock::copies {
namespace {

constexpr std::align_val_t kAlignment{kCacheLine};

// Lives of a table are numbered upwards and wrap around.
bool is_earlier(uint32_t life, uint32_t other) noexcept {
    return static_cast<int32_t>(life - other) < 0;
}

}  // namespace

void Store::Free::operator()(std::byte* memory) const noexcept {
    ::operator delete(memory, kAlignment);
}

size_t Store::memory_needed(uint32_t capacity) noexcept {
    if (capacity == 0 || capacity > kCapacityMax) {
        return 0;
    }
    // A table has an even number of units.
    return conn::Table::memory_needed(capacity) + 2 * (size_t{capacity} + 1) * sizeof(std::atomic<uint32_t>);
}

Result<std::unique_ptr<Store>> Store::create(uint32_t capacity, const HashKey& secret) {
    const size_t needed = memory_needed(capacity);
    if (needed == 0) {
        return fail(Errc::InvalidArgument, "copies of connections: capacity " + std::to_string(capacity) +
                                               " is not between 1 and " + std::to_string(kCapacityMax));
    }
    const size_t table_bytes = conn::Table::memory_needed(capacity);
    Memory memory(static_cast<std::byte*>(::operator new(table_bytes, kAlignment, std::nothrow)));
    Marks taken(new (std::nothrow) std::atomic<uint32_t>[size_t{capacity} + 1] {});
    Marks refused(new (std::nothrow) std::atomic<uint32_t>[size_t{capacity} + 1] {});
    if (memory == nullptr || taken == nullptr || refused == nullptr) {
        return fail(Errc::Exhausted, "copies of connections: the machine has no " + std::to_string(needed) +
                                         " bytes for " + std::to_string(capacity) + " copies");
    }
    PENSTOCK_TRY(conn::Table table,
                 conn::Table::create(std::span(memory.get(), table_bytes), capacity, secret));
    return std::unique_ptr<Store>(
        new Store(std::move(memory), std::move(taken), std::move(refused), std::move(table)));
}

Store::Store(Memory memory, Marks taken, Marks refused, conn::Table table) noexcept
    : memory_(std::move(memory)),
      table_(std::move(table)),
      taken_(std::move(taken)),
      refused_(std::move(refused)) {}

Store::Slot Store::put(const conn::Connection& copy, Origin origin) noexcept {
    conn::Connection held = copy;
    held.is_pinned = origin == Origin::Own;
    // The release pairs with find(): the stores of insert() into the buckets are ordered between both counts
    // by being releases themselves.
    const uint32_t puts = puts_.load(std::memory_order_relaxed);
    puts_.store(puts + 1, std::memory_order_relaxed);
    const conn::Inserted inserted = table_.insert(held, table_.hash(held.forward), table_.hash(held.reverse));
    puts_.store(puts + 2, std::memory_order_release);
    if (inserted.status != conn::InsertStatus::Inserted) {
        return {};
    }
    // Not taken: earlier than this life. Unless a worker has found and taken the copy already.
    const uint32_t life = table_.generation(inserted.index);
    std::atomic<uint32_t>& mark = taken_[inserted.index.value];
    uint32_t marked = mark.load(std::memory_order_relaxed);
    while (marked != life && !mark.compare_exchange_weak(marked, life - 1, std::memory_order_relaxed)) {
    }
    return {inserted.index.value};
}

bool Store::refresh(Slot slot, const conn::Connection& copy) noexcept {
    const ConnectionIndex index{slot.value};
    const conn::Connection held = table_.connection(index);
    if (is_taken(slot) || held.forward != copy.forward || held.reverse != copy.reverse) {
        return false;
    }
    for (const conn::Direction direction : {conn::Direction::Forward, conn::Direction::Reverse}) {
        table_.set_tag(index, direction, copy.tags[static_cast<size_t>(direction)]);
    }
    switch (copy.forward.protocol) {
        case Protocol::Tcp:
            table_.set_state(index, copy.tcp_state(), copy.last_seen);
            break;
        case Protocol::Udp:
            table_.set_state(index, copy.datagram_state(), copy.last_seen);
            break;
        case Protocol::Sctp:
            table_.set_state(index, copy.sctp_state(), copy.last_seen);
            break;
    }
    table_.touch(index, copy.last_seen);
    forget_refusal(slot);
    return true;
}

void Store::remove(Slot slot) noexcept {
    table_.erase({slot.value});
}

bool Store::is_taken(Slot slot) const noexcept {
    return taken_[slot.value].load(std::memory_order_relaxed) == table_.generation({slot.value});
}

std::optional<Store::Found> Store::find(const packet::FlowKey& key) const noexcept {
    const uint64_t hash = table_.hash(key);
    conn::Table::Lookup lookup;
    for (int i = 0; i < kLookups; ++i) {
        const uint32_t puts = puts_.load(std::memory_order_acquire);
        if (table_.look_up(key, hash, lookup)) {
            const Slot slot{lookup.found.index.value};
            return Found{.slot = slot,
                         .life = lookup.generation,
                         .connection = lookup.connection,
                         .direction = lookup.found.direction,
                         .is_taken = taken_[slot.value].load(std::memory_order_relaxed) == lookup.generation};
        }
        if (puts_.load(std::memory_order_relaxed) == puts) {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

void Store::mark_taken(const Found& found) noexcept {
    std::atomic<uint32_t>& mark = taken_[found.slot.value];
    uint32_t marked = mark.load(std::memory_order_relaxed);
    // A worker that was slow to take an earlier copy of the slot must not replace the mark of this one.
    while (is_earlier(marked, found.life) &&
           !mark.compare_exchange_weak(marked, found.life, std::memory_order_relaxed)) {
    }
}

}  // namespace penstock::copies
