// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/affinity.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>
#include <tuple>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/lb/affinity_words.hpp"

namespace penstock::lb {
namespace {

using namespace detail;
using Bucket = AffinityBucket;

// Tries of one flow at one bucket. Each failure is another flow's success, and every other worker may have
// three of these at once.
constexpr uint32_t kTries = 3 * limits::kWorkersMax;
// Tries of a reader that lists: a bucket changes occasionally, not permanently.
constexpr uint32_t kCopyTries = 64;

// Another core's counter may be slightly ahead, but never a minute (2 x 10^3 units). A time further in the
// future is a wrapped-around time from years ago.
constexpr int32_t kAheadMax = 2'000;
bool holds(uint64_t value, CoarseTime now, int32_t limit) noexcept {
    const int32_t age = units_between(time_of(value), now);
    return !is_nothing(value) && age < limit && age > -kAheadMax;
}

// Position in the set of the value's endpoint; kNone if the entry is invalid for this client.
uint32_t honoured_position(uint64_t value, const AffinityTable::Question& question) noexcept {
    if (!holds(value, question.now, question.limit)) {
        return EndpointPositions::kNone;
    }
    const uint32_t position = question.set.positions.find(endpoint_of(value));
    return position != EndpointPositions::kNone && question.set.usable[position].stay == stay_of(value)
               ? position
               : EndpointPositions::kNone;
}

}  // namespace

size_t AffinityTable::memory_needed(uint32_t entries) noexcept {
    return (size_t{entries} + Bucket::kSlots - 1) / Bucket::kSlots * sizeof(Bucket);
}

Result<AffinityTable> AffinityTable::create(std::span<std::byte> memory, uint32_t entries,
                                            const HashKey& secret) {
    const size_t needed = memory_needed(entries);
    if (needed == 0 || memory.size() < needed ||
        reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::InvalidArgument,
                    "cannot create an affinity table of " + std::to_string(entries) + " entries in " +
                        std::to_string(memory.size()) +
                        " bytes: no entries, or the memory is too small or does not begin on a cache line");
    }
    AffinityTable table;
    table.buckets_ = {reinterpret_cast<Bucket*>(memory.data()), needed / sizeof(Bucket)};
    table.mix_ = KeyedMix(secret);
    std::uninitialized_value_construct(table.buckets_.begin(), table.buckets_.end());
    return table;
}

AffinityTable::Hashed AffinityTable::hashed(const AffinityKey& key) const noexcept {
    Hashed out{
        .bucket = nullptr,
        .client = {load<uint64_t>(key.client.bytes().data()), load<uint64_t>(key.client.bytes().data() + 8)},
        .owner = uint64_t{key.owner.value} << 32 | key.epoch,
        .nothing = 0,
        .tag = 0};
    const uint64_t hash = mix_.of(out.client[0], out.client[1], out.owner, 0, 0);
    out.nothing = nothing_of(hash);
    out.tag = static_cast<uint8_t>(hash);
    out.bucket =
        &buckets_[static_cast<size_t>((static_cast<unsigned __int128>(hash) * buckets_.size()) >> 64)];
    return out;
}

// The result, including "not found", is valid only if the bucket's state is still `state` afterwards.
AffinityTable::Sight AffinityTable::scan(const Hashed& at, uint64_t state) noexcept {
    for (uint64_t live = state & kLive; live != 0; live &= live - 1) {
        const auto slot = static_cast<uint32_t>(std::countr_zero(live));
        if (at.bucket->tags[slot].load(std::memory_order_acquire) != at.tag) {
            continue;
        }
        const detail::AffinitySlot& entry = at.bucket->slots[slot];
        if (entry.owner.load(std::memory_order_acquire) == at.owner &&
            entry.client[0].load(std::memory_order_acquire) == at.client[0] &&
            entry.client[1].load(std::memory_order_acquire) == at.client[1]) {
            return {slot, entry.value.load(std::memory_order_acquire)};
        }
    }
    return {};
}

// Order of preference: a free slot; a slot with an ended entry; a tentative entry; an established entry. Of
// the last two kinds, the Service with most slots in the bucket loses its oldest entry. Clients are
// distributed to buckets by a keyed hash, so a Service with most entries in the table has most slots in
// nearly every bucket. If all Services have one slot, a tentative entry is not inserted. So a flood towards a
// Service evicts the tentative entries and, once, one in seven established entries of the largest holder.
// Beyond that it evicts only its own.
//
// Expiry is checked only for entries of the question's own owner; expired entries of other owners are removed
// by the sweep (WorkerSet::sweep_affinity).
uint32_t AffinityTable::victim(const Hashed& at, uint64_t state, const Question& question,
                               Entrant entrant) noexcept {
    struct Candidate {
        uint32_t slot = Answer::kNone;
        uint32_t held = 0;
        bool is_own = false;
        int32_t age = 0;
    };
    std::array<uint32_t, Bucket::kSlots> owners;
    for (uint32_t slot = 0; slot < Bucket::kSlots; ++slot) {
        if ((state & (claimed_bit(slot) | live_bit(slot))) == 0) {
            return slot;
        }
        owners[slot] =
            static_cast<uint32_t>(at.bucket->slots[slot].owner.load(std::memory_order_relaxed) >> 32);
    }
    Candidate tentative, lasting;
    for (uint64_t live = state & kLive; live != 0; live &= live - 1) {
        const auto slot = static_cast<uint32_t>(std::countr_zero(live));
        const uint64_t value = at.bucket->slots[slot].value.load(std::memory_order_relaxed);
        const bool is_ours = at.bucket->slots[slot].owner.load(std::memory_order_relaxed) == at.owner;
        if (is_nothing(value) || (is_ours && !holds(value, question.now, question.limit))) {
            return slot;
        }
        const Candidate candidate{.slot = slot,
                                  .held = static_cast<uint32_t>(std::ranges::count(owners, owners[slot])),
                                  .is_own = owners[slot] == question.key.owner.value,
                                  .age = units_between(time_of(value), question.now)};
        Candidate& best = (value & kTentative) != 0 ? tentative : lasting;
        const auto rank = [](const Candidate& c) { return std::tuple(c.held, c.is_own, c.age); };
        if (best.slot == Answer::kNone || rank(candidate) > rank(best)) {
            best = candidate;
        }
    }
    if (tentative.slot != Answer::kNone) {
        return tentative.slot;
    }
    return entrant == Entrant::Established || lasting.is_own || lasting.held > 1 ? lasting.slot
                                                                                 : Answer::kNone;
}

AffinityTable::Answer AffinityTable::find(const Question& question) const noexcept {
    if (buckets_.empty()) {
        return {};
    }
    const Hashed at = hashed(question.key);
    for (uint32_t tries = 0; tries < kTries; ++tries) {
        // Acquires the writes of the publishers of the live slots.
        const uint64_t state = at.bucket->state.load(std::memory_order_acquire);
        const Sight seen = scan(at, state);
        if (seen.slot == Answer::kNone) {
            return {};  // if it is wrong, agree() corrects it
        }
        if (at.bucket->state.load(std::memory_order_acquire) == state) {
            const uint32_t position = honoured_position(seen.value, question);
            return {
                position, {&at.bucket->slots[seen.slot].value, seen.value, seen.value, at.nothing}, false};
        }
    }
    return {};
}

AffinityTable::Answer AffinityTable::agree(const Question& question, uint32_t wanted) noexcept {
    return enter(question, wanted, Entrant::Tentative);
}

AffinityTable::Answer AffinityTable::enter(const Question& question, uint32_t wanted,
                                           Entrant entrant) noexcept {
    if (buckets_.empty()) {
        return {wanted, {}, false};
    }
    const Hashed at = hashed(question.key);
    std::atomic<uint64_t>& state = at.bucket->state;
    const uint64_t value = established(question.set.usable[wanted], question.now) |
                           (entrant == Entrant::Tentative ? kNew | kTentative : 0);
    uint32_t held = Answer::kNone;
    uint64_t before = at.nothing;
    bool evicted = false;
    const auto give_back = [&] {
        if (held != Answer::kNone) {
            state.fetch_and(~claimed_bit(held), std::memory_order_acq_rel);
        }
    };
    for (uint32_t tries = 0; tries < kTries; ++tries) {
        uint64_t now = state.load(std::memory_order_acquire);
        const Sight seen = scan(at, now);
        if (seen.slot != Answer::kNone) {
            if (state.load(std::memory_order_acquire) != now) {
                continue;
            }
            const uint32_t position = honoured_position(seen.value, question);
            if (position != Answer::kNone) {
                give_back();
                return {position,
                        {&at.bucket->slots[seen.slot].value, seen.value, seen.value, at.nothing},
                        evicted};
            }
        }
        if (held != Answer::kNone) {
            // An entry that is no longer valid is replaced by the new one in the same step: before and after
            // it the key is live exactly once.
            const uint64_t ends = seen.slot == Answer::kNone ? 0 : live_bit(seen.slot);
            const uint64_t next = ((now & ~(claimed_bit(held) | ends)) | live_bit(held)) + kVersionOne;
            if (state.compare_exchange_strong(now, next, std::memory_order_acq_rel,
                                              std::memory_order_relaxed)) {
                return {wanted,
                        {&at.bucket->slots[held].value, value, ends == 0 ? before : seen.value, at.nothing},
                        evicted};
            }
            continue;
        }
        const uint32_t slot = seen.slot != Answer::kNone ? seen.slot : victim(at, now, question, entrant);
        if (slot == Answer::kNone) {
            break;
        }
        const bool was_live = (now & live_bit(slot)) != 0;
        const uint64_t next = ((now & ~live_bit(slot)) | claimed_bit(slot)) + kVersionOne;
        if (!state.compare_exchange_strong(now, next, std::memory_order_acq_rel, std::memory_order_relaxed)) {
            continue;
        }
        held = slot;
        detail::AffinitySlot& entry = at.bucket->slots[slot];
        if (was_live) {
            const uint64_t former = entry.value.load(std::memory_order_relaxed);
            const bool is_ours = entry.owner.load(std::memory_order_relaxed) == at.owner;
            if (seen.slot != Answer::kNone) {
                before = former;
            } else {
                evicted = !is_nothing(former) && !(is_ours && !holds(former, question.now, question.limit));
            }
        }
        // Release: a thread that reads one of these also sees the claim.
        at.bucket->tags[slot].store(at.tag, std::memory_order_release);
        entry.owner.store(at.owner, std::memory_order_release);
        entry.client[0].store(at.client[0], std::memory_order_release);
        entry.client[1].store(at.client[1], std::memory_order_release);
        entry.value.store(value, std::memory_order_release);
    }
    give_back();
    return {wanted, {}, evicted};
}

void AffinityTable::open(const Pin& pin, CoarseTime now) noexcept {
    if (pin.value == nullptr) {
        return;
    }
    uint64_t present = pin.value->load(std::memory_order_relaxed);
    // A second try if another flow of the client was faster: it may have withdrawn the entry that this flow
    // uses.
    for (int tries = 0; tries < 2; ++tries) {
        const bool is_ours = names_same_endpoint(present, pin.word);
        const bool is_confirmed = (present & kTentative) == 0 ||
                                  ((present & kNew) == 0 && units_between(time_of(present), now) <= 0);
        if ((!is_ours && present != pin.nothing) || (is_ours && is_confirmed)) {
            return;
        }
        // Relaxed: no other data depends on this word.
        if (pin.value->compare_exchange_strong(present, refreshed_at(is_ours ? present : pin.word, now, kNew),
                                               std::memory_order_relaxed)) {
            return;
        }
    }
}

AffinityTable::Established AffinityTable::establish(const Question& question, uint32_t position) noexcept {
    Answer answer = find(question);
    if (answer.position == Answer::kNone) {
        answer = enter(question, position, Entrant::Established);
    }
    if (answer.position == position && answer.pin.value != nullptr) {
        uint64_t present = answer.pin.word;
        // If this fails, another flow of the client was faster, or the entry is gone.
        for (int tries = 0; tries < 2 && names_same_endpoint(present, answer.pin.word); ++tries) {
            if (answer.pin.value->compare_exchange_strong(
                    present, refreshed_at(present, question.now, kNew | kTentative),
                    std::memory_order_relaxed)) {
                break;
            }
        }
    }
    return {answer.evicted};
}

void AffinityTable::withdraw(const Pin& pin) noexcept {
    if (pin.value != nullptr && pin.before != pin.word) {
        uint64_t expected = pin.word;
        pin.value->compare_exchange_strong(expected, pin.before, std::memory_order_relaxed);
    }
}

uint32_t AffinityTable::size() const noexcept {
    uint64_t entries = 0;
    for (const Bucket& bucket : buckets_) {
        entries += static_cast<uint32_t>(std::popcount(bucket.state.load(std::memory_order_relaxed) & kLive));
    }
    return static_cast<uint32_t>(entries);
}

bool AffinityTable::copy(const Bucket& bucket, uint64_t& state,
                         std::array<AffinityEntry, Bucket::kSlots>& entries) noexcept {
    for (uint32_t tries = 0; tries < kCopyTries; ++tries) {
        state = bucket.state.load(std::memory_order_acquire);
        for (uint64_t live = state & kLive; live != 0; live &= live - 1) {
            const auto slot = static_cast<uint32_t>(std::countr_zero(live));
            const detail::AffinitySlot& from = bucket.slots[slot];
            const uint64_t owner = from.owner.load(std::memory_order_acquire);
            const uint64_t words[2] = {from.client[0].load(std::memory_order_acquire),
                                       from.client[1].load(std::memory_order_acquire)};
            const uint64_t value = from.value.load(std::memory_order_acquire);
            entries[slot] = {.key = {.owner = {static_cast<uint32_t>(owner >> 32)},
                                     .epoch = static_cast<uint32_t>(owner),
                                     .client = IpAddr::v6(std::bit_cast<std::array<uint8_t, 16>>(words))},
                             .endpoint = is_nothing(value) ? EndpointId{} : endpoint_of(value),
                             .stay = stay_of(value),
                             .refreshed = time_of(value)};
        }
        if (bucket.state.load(std::memory_order_acquire) == state) {
            return true;
        }
    }
    return false;
}

void AffinityTable::for_each(const std::function<bool(const AffinityEntry&)>& visit) const {
    std::array<AffinityEntry, Bucket::kSlots> entries;
    for (const Bucket& bucket : buckets_) {
        uint64_t state = 0;
        if ((bucket.state.load(std::memory_order_relaxed) & kLive) == 0 || !copy(bucket, state, entries)) {
            continue;
        }
        for (uint64_t live = state & kLive; live != 0; live &= live - 1) {
            const AffinityEntry& entry = entries[static_cast<size_t>(std::countr_zero(live))];
            if (entry.endpoint.is_set() && !visit(entry)) {
                return;
            }
        }
    }
}

uint32_t AffinityTable::remove_if(uint32_t first, uint32_t count,
                                  const std::function<bool(const AffinityEntry&)>& is_dead) {
    std::array<AffinityEntry, Bucket::kSlots> entries;
    uint32_t removed = 0;
    for (Bucket& bucket : buckets_.subspan(first, count)) {
        for (uint32_t tries = 0; tries < kCopyTries; ++tries) {
            uint64_t state = bucket.state.load(std::memory_order_relaxed);
            if ((state & kLive) == 0 || !copy(bucket, state, entries)) {
                break;
            }
            uint64_t ends = 0;
            uint32_t named = 0;
            for (uint64_t live = state & kLive; live != 0; live &= live - 1) {
                const auto slot = static_cast<uint32_t>(std::countr_zero(live));
                const bool has_ended = !entries[slot].endpoint.is_set();
                if (has_ended || is_dead(entries[slot])) {
                    ends |= live_bit(slot);
                    named += has_ended ? 0 : 1;
                }
            }
            if (ends == 0) {
                break;
            }
            if (bucket.state.compare_exchange_strong(state, (state & ~ends) + kVersionOne,
                                                     std::memory_order_acq_rel, std::memory_order_relaxed)) {
                removed += named;
                break;
            }
        }
    }
    return removed;
}

void AffinityTable::for_each_former(std::span<const std::byte> memory,
                                    const std::function<void(const FormerAffinityEntry&)>& visit) {
    if (reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return;
    }
    const std::span buckets(reinterpret_cast<const Bucket*>(memory.data()), memory.size() / sizeof(Bucket));
    for (const Bucket& bucket : buckets) {
        uint64_t state = 0;
        std::array<AffinityEntry, Bucket::kSlots> entries;
        if (!copy(bucket, state, entries)) {
            continue;
        }
        for (uint64_t live = state & kLive; live != 0; live &= live - 1) {
            const auto slot = static_cast<uint32_t>(std::countr_zero(live));
            const uint64_t value = bucket.slots[slot].value.load(std::memory_order_relaxed);
            // An entry with which no flow was opened yet is nobody's.
            if (entries[slot].endpoint.is_set() && (value & kNew) == 0) {
                visit({entries[slot], (value & kTentative) != 0});
            }
        }
    }
}

bool AffinityTable::adopt(const Question& question, uint32_t wanted, bool is_tentative) noexcept {
    if (find(question).position != Answer::kNone) {
        return false;
    }
    const Answer answer = enter(question, wanted, is_tentative ? Entrant::Tentative : Entrant::Established);
    if (is_tentative) {
        open(answer.pin, question.now);
    }
    return answer.pin.value != nullptr && !answer.evicted;
}

}  // namespace penstock::lb
