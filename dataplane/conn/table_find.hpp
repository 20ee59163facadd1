// SPDX-License-Identifier: Apache-2.0
// The look-ups of Table that are compiled into the packet path. Included by table.hpp.
#pragma once

#include "dataplane/base/same32.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::conn {

PENSTOCK_ALWAYS_INLINE bool Table::holds_v4(uint32_t reference, const packet::FlowKey& key) const noexcept {
    const Entry& entry = entries_[reference >> 1];
    const size_t direction = reference & 1;
    const auto kind = static_cast<uint16_t>(static_cast<uint16_t>(key.protocol) |
                                            static_cast<uint16_t>(KeyFamilies::V4) << 8);
    return ((entry.v4_addresses[direction] ^ packet::v4_addresses(key)) |
            (uint64_t{entry.port_pairs[direction]} ^ packet::port_pair(key)) |
            static_cast<uint64_t>(load<uint16_t>(&entry.protocol) ^ kind)) == 0;
}

// Compares the key with a pair of units.
PENSTOCK_ALWAYS_INLINE bool Table::holds_addresses(uint32_t reference,
                                                   const packet::FlowKey& key) const noexcept {
    const Entry& entry = entries_[reference >> 1];
    const size_t direction = reference & 1;
    const uint32_t difference =
        (entry.port_pairs[direction] ^ packet::port_pair(key)) |
        static_cast<uint32_t>(static_cast<uint8_t>(entry.protocol) ^ static_cast<uint8_t>(key.protocol));
    return same32(&key, &v6_addresses(reference >> 1).by_direction[direction]) && difference == 0;
}

PENSTOCK_ALWAYS_INLINE bool Table::holds_v6(uint32_t reference, const packet::FlowKey& key) const noexcept {
    return entries_[reference >> 1].is_v6() && holds_addresses(reference, key);
}

PENSTOCK_ALWAYS_INLINE bool Table::holds(uint32_t reference, const packet::FlowKey& key) const noexcept {
    const Entry& entry = entries_[reference >> 1];
    if (key.source.is_v4()) {
        return holds_v4(reference, key) || (entry.is_mixed() && holds_addresses(reference, key));
    }
    return holds_v6(reference, key);
}

PENSTOCK_ALWAYS_INLINE Found Table::find_in(uint32_t bucket, uint32_t tag,
                                            const packet::FlowKey& key) const noexcept {
    for (uint32_t matches = match8(buckets_[bucket].tags, tag); matches != 0; matches &= matches - 1) {
        const uint32_t reference = buckets_[bucket].references[std::countr_zero(matches)];
        if (holds(reference, key)) {
            return {{reference >> 1}, static_cast<Direction>(reference & 1)};
        }
    }
    return {};
}

PENSTOCK_ALWAYS_INLINE Found Table::find(const packet::FlowKey& key, uint64_t hash) const noexcept {
    const uint32_t first = first_bucket(hash);
    const Found found = find_in(first, tag_of(hash), key);
    return found.is_hit() ? found : find_in(other_bucket(first, tag_of(hash)), tag_of(hash), key);
}

PENSTOCK_ALWAYS_INLINE uint32_t Table::candidate_in(uint32_t bucket, uint32_t tag) const noexcept {
    const uint32_t matches = match8(buckets_[bucket].tags, tag);
    return matches == 0 ? kNone : buckets_[bucket].references[std::countr_zero(matches)];
}

template <Table::Keys kKeys, typename KeyAt, typename HashAt, typename FoundAt>
PENSTOCK_ALWAYS_INLINE void Table::find_all(uint32_t count, KeyAt&& key_at, HashAt&& hash_at,
                                            FoundAt&& found_at) const noexcept {
    PENSTOCK_ASSERT(count <= limits::kBurstMax);
    std::array<uint32_t, limits::kBurstMax> candidate;
    std::array<uint8_t, limits::kBurstMax> elsewhere;  // keys without a matching tag in their first bucket
    uint32_t elsewhere_count = 0;
    const auto prefetch_entry = [&](uint32_t i) PENSTOCK_INLINE_LAMBDA {
        const Entry* entry = &entries_[candidate[i] >> 1];
        prefetch_read(entry);
        if (kKeys == Keys::V6 || (kKeys == Keys::Both && !key_at(i).source.is_v4())) {
            prefetch_read(entry + 1);
        }
    };
    const auto is_held = [&](uint32_t i) PENSTOCK_INLINE_LAMBDA {
        if constexpr (kKeys == Keys::V4) {
            return holds_v4(candidate[i], key_at(i));
        } else if constexpr (kKeys == Keys::V6) {
            return holds_v6(candidate[i], key_at(i));
        } else {
            return holds(candidate[i], key_at(i));
        }
    };
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t first = first_bucket(hash_at(i));
        const uint32_t tag = tag_of(hash_at(i));
        candidate[i] = candidate_in(first, tag);
        if (candidate[i] != kNone) [[likely]] {
            prefetch_entry(i);
        } else {
            prefetch_read(&buckets_[other_bucket(first, tag)]);
            elsewhere[elsewhere_count++] = static_cast<uint8_t>(i);
        }
    }
    for (uint32_t at = 0; at < elsewhere_count; ++at) {
        const uint32_t i = elsewhere[at];
        const uint32_t tag = tag_of(hash_at(i));
        candidate[i] = candidate_in(other_bucket(first_bucket(hash_at(i)), tag), tag);
        if (candidate[i] != kNone) {
            prefetch_entry(i);
        }
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (candidate[i] == kNone) {
            found_at(i) = {};
        } else if (is_held(i)) [[likely]] {
            found_at(i) = {{candidate[i] >> 1}, static_cast<Direction>(candidate[i] & 1)};
        } else {
            // Another key has this tag (one look-up in 2^29), or the entry is a mixed one.
            found_at(i) = find_slowly(key_at(i), hash_at(i));
        }
    }
}

template <typename KeyAt, typename HashAt, typename FoundAt>
PENSTOCK_ALWAYS_INLINE void Table::find_hashed(uint32_t count, uint32_t v6, KeyAt&& key_at, HashAt&& hash_at,
                                               FoundAt&& found_at) const noexcept {
    if (v6 == 0) {
        find_all<Keys::V4>(count, key_at, hash_at, found_at);
    } else if (v6 == count) {
        find_all<Keys::V6>(count, key_at, hash_at, found_at);
    } else {
        find_all<Keys::Both>(count, key_at, hash_at, found_at);
    }
}

template <typename KeyAt>
PENSTOCK_ALWAYS_INLINE void Table::find_burst(uint32_t count, KeyAt&& key_at, uint64_t* hash,
                                              Found* found) const noexcept {
    uint32_t v6 = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const packet::FlowKey& key = key_at(i);
        const bool is_v4 = key.source.is_v4();
        v6 += is_v4 ? 0 : 1;
        hash[i] = is_v4 ? packet::v4_hash_of(key, mix_) : packet::v6_hash_of(key, mix_);
        prefetch(hash[i]);
    }
    find_hashed(
        count, v6, key_at, [&](uint32_t i) PENSTOCK_INLINE_LAMBDA { return hash[i]; },
        [&](uint32_t i) PENSTOCK_INLINE_LAMBDA -> Found& { return found[i]; });
}

}  // namespace penstock::conn
