// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/fragments/fragment_table.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include "dataplane/base/check.hpp"

namespace penstock::pipeline {
namespace {

using Kind = DatagramFate::Kind;

}  // namespace

FragmentTable::FragmentTable(TscRate rate, const HashKey& secret) noexcept
    : datagram_time_(rate.milliseconds(kDatagramMs)),
      wait_(rate.milliseconds(kFragmentWaitMs)),
      mix_(secret) {
    for (uint32_t i = 0; i < kSlots; ++i) {
        slots_[i].next = static_cast<uint16_t>(i + 1 < kSlots ? i + 1 : kEnd);
    }
}

uint64_t FragmentTable::hash_of(const DatagramKey& key) const noexcept {
    const auto from = load<std::array<uint64_t, 2>>(key.source.bytes().data()),
               to = load<std::array<uint64_t, 2>>(key.destination.bytes().data());
    // Mixed twice, because ids are consecutive: after a single mix they may map to one set for a long time.
    return mix_.of(mix_.of(from[0], from[1], to[0], to[1], 0), key.rest);
}

static_assert(DatagramIndex::kNone == 0xffff);  // so that kEnd from find_in() is an unset index

uint16_t FragmentTable::find_in(uint32_t set, uint32_t tag, const DatagramKey& key) const noexcept {
    for (uint32_t matches = match8(&tags_[set * kWays], tag); matches != 0; matches &= matches - 1) {
        const auto at = static_cast<uint16_t>(set * kWays + static_cast<uint32_t>(std::countr_zero(matches)));
        if (datagrams_[at].key == key) {
            return at;
        }
    }
    return kEnd;
}

bool FragmentTable::is_known(const DatagramKey& key, TscTime now) const noexcept {
    const uint64_t hash = hash_of(key);
    const uint16_t known = find_in(set_of(hash), tag_of(hash), key);
    return known != kEnd && !is_expired(datagrams_[known], now);
}

uint16_t FragmentTable::make_room(uint32_t set, TscTime now) const noexcept {
    uint16_t oldest = kEnd;
    for (uint32_t way = 0; way < kWays; ++way) {
        const auto at = static_cast<uint16_t>(set * kWays + way);
        const Datagram& datagram = datagrams_[at];
        if (tags_[at] == 0 || is_expired(datagram, now)) {
            return at;
        }
        if (datagram.under_way == 0 && (oldest == kEnd || datagram.since < datagrams_[oldest].since)) {
            oldest = at;
        }
    }
    return oldest;
}

std::expected<void, DropReason> FragmentTable::note_piece(Datagram& datagram,
                                                          const packet::FragmentRange& place) noexcept {
    auto& seen = datagram.seen;
    const uint8_t count = datagram.pieces;
    const bool contradicts = place.is_last ? (datagram.total != 0 && datagram.total != place.end) ||
                                                 (count > 0 && seen[count - 1].end > place.end)
                                           : datagram.total != 0 && place.end >= datagram.total;
    if (contradicts) {
        datagram.fate = {.kind = Kind::Dead};
        return drop(DropReason::BadFragment);
    }
    uint8_t at = 0;  // the first piece that ends at or behind the new fragment's beginning
    while (at < count && seen[at].end < place.begin) {
        ++at;
    }
    const bool touches_left = at < count && seen[at].end == place.begin;
    // the first piece that could overlap
    const uint8_t next = static_cast<uint8_t>(at + (touches_left ? 1 : 0));
    if (next < count && seen[next].begin < place.end) {
        if (seen[next].begin > place.begin || seen[next].end < place.end) {
            datagram.fate = {.kind = Kind::Dead};
        }
        return drop(DropReason::FragmentOverlap);
    }
    const bool touches_right = next < count && seen[next].begin == place.end;
    if (touches_left && touches_right) {
        seen[at].end = seen[next].end;
        std::copy(seen.begin() + next + 1, seen.begin() + count, seen.begin() + next);
        --datagram.pieces;
    } else if (touches_left) {
        seen[at].end = place.end;
    } else if (touches_right) {
        seen[next].begin = place.begin;
    } else {
        if (count == kPiecesMax) {
            datagram.fate = {.kind = Kind::Dead};
            return drop(DropReason::FragmentsFull);
        }
        std::copy_backward(seen.begin() + next, seen.begin() + count, seen.begin() + count + 1);
        seen[next] = {place.begin, place.end};
        ++datagram.pieces;
    }
    if (place.is_last) {
        datagram.total = place.end;
    }
    return {};
}

std::expected<DatagramIndex, DropReason> FragmentTable::take(const DatagramKey& key,
                                                             const packet::FragmentRange& place,
                                                             TscTime now) noexcept {
    const uint64_t hash = hash_of(key);
    const uint32_t set = set_of(hash), tag = tag_of(hash);
    uint16_t at = find_in(set, tag, key);
    if (at == kEnd || is_expired(datagrams_[at], now)) {
        at = at == kEnd ? make_room(set, now) : at;
        if (at == kEnd) {
            return drop(DropReason::FragmentsFull);
        }
        Datagram& fresh = *std::construct_at(&datagrams_[at]);
        fresh.key = key;
        fresh.since = now;
        tags_[at] = tag;
    }
    Datagram& datagram = datagrams_[at];
    if (datagram.fate.kind == Kind::Dead) {
        return drop(DropReason::Fragment);
    }
    if (const auto noted = note_piece(datagram, place); !noted) {
        if (datagram.fate.kind == Kind::Dead) {
            decide({at}, datagram.fate);
        }
        return drop(noted.error());
    }
    ++datagram.under_way;
    return DatagramIndex{at};
}

void FragmentTable::unlink(uint16_t at) noexcept {
    const Datagram& datagram = datagrams_[at];
    (datagram.older == kEnd ? oldest_ : datagrams_[datagram.older].younger) = datagram.younger;
    (datagram.younger == kEnd ? newest_ : datagrams_[datagram.younger].older) = datagram.older;
}

void FragmentTable::decide(DatagramIndex index, const DatagramFate& fate) noexcept {
    Datagram& datagram = datagrams_[index.value];
    // A dead datagram stays dead: the attack may have been detected in the same burst as its first fragment.
    datagram.fate = datagram.fate.kind == Kind::Dead ? datagram.fate : fate;
    if (datagram.waiting == 0) {
        return;
    }
    unlink(index.value);
    (ready_first_ == kEnd ? ready_first_ : slots_[ready_last_].next) = datagram.first;
    ready_last_ = datagram.last;
    datagram.waiting = 0;
    datagram.first = datagram.last = kEnd;
}

void FragmentTable::served(DatagramIndex index) noexcept {
    Datagram& datagram = datagrams_[index.value];
    PENSTOCK_ASSERT(datagram.under_way > 0);
    --datagram.under_way;
    const bool is_whole =
        datagram.pieces == 1 && datagram.seen[0].begin == 0 && datagram.seen[0].end == datagram.total;
    if (datagram.under_way == 0 && is_whole) {
        forget(index.value);
    }
}

SlotIndex FragmentTable::wait(DatagramIndex index, TscTime now) noexcept {
    Datagram& datagram = datagrams_[index.value];
    const auto source = static_cast<uint8_t>(mix_.of(load<uint64_t>(datagram.key.source.bytes().data()),
                                                     load<uint64_t>(datagram.key.source.bytes().data() + 8)));
    if (free_slot_ == kEnd || datagram.waiting == limits::kFragmentsWaitingPerDatagram ||
        waiting_of_source_[source] == limits::kFragmentsWaitingPerSource) {
        return {};
    }
    if (datagram.waiting == 0) {
        const uint32_t set = index.value / kWays * kWays;
        uint32_t others = 0;
        for (uint32_t at = set; at < set + kWays; ++at) {
            others += tags_[at] != 0 && datagrams_[at].waiting > 0 ? 1 : 0;
        }
        if (others >= kWaysWaitingMax) {
            return {};
        }
    }
    const uint16_t slot = std::exchange(free_slot_, slots_[free_slot_].next);
    slots_[slot].datagram = index;
    slots_[slot].source = source;
    slots_[slot].next = kEnd;
    slots_[slot].handle = nullptr;
    ++waiting_of_source_[source];
    ++slots_taken_;
    if (datagram.waiting == 0) {
        datagram.waits_since = now;
        datagram.older = newest_;
        datagram.younger = kEnd;
        (newest_ == kEnd ? oldest_ : datagrams_[newest_].younger) = index.value;
        newest_ = index.value;
        datagram.first = slot;
    } else {
        slots_[datagram.last].next = slot;
    }
    datagram.last = slot;
    ++datagram.waiting;
    return {slot};
}

void FragmentTable::fill(SlotIndex slot, rte_mbuf* handle, NicPortId port, HandoffNote note) noexcept {
    slots_[slot.value].handle = handle;
    slots_[slot.value].port = port;
    slots_[slot.value].note = note;
}

void FragmentTable::leave(uint16_t slot) noexcept {
    --waiting_of_source_[slots_[slot].source];
    --slots_taken_;
    slots_[slot].next = free_slot_;
    free_slot_ = slot;
}

uint32_t FragmentTable::datagrams() const noexcept {
    return static_cast<uint32_t>(std::ranges::count_if(tags_, [](uint32_t tag) { return tag != 0; }));
}

}  // namespace penstock::pipeline
