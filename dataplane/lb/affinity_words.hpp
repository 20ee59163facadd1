// SPDX-License-Identifier: Apache-2.0
// The words of the affinity table (affinity.hpp): the state of a bucket, and the value of a slot. For
// AffinityTable only.
#pragma once

#include <bit>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/lb/affinity.hpp"
#include "dataplane/lb/backend.hpp"

namespace penstock::lb::detail {

// Fields of a bucket's state.
constexpr uint64_t live_bit(uint32_t slot) noexcept {
    return uint64_t{1} << slot;
}
constexpr uint64_t claimed_bit(uint32_t slot) noexcept {
    return uint64_t{1} << (AffinityBucket::kSlots + slot);
}
inline constexpr uint64_t kLive = live_bit(AffinityBucket::kSlots) - 1;
inline constexpr uint64_t kVersionOne = uint64_t{1} << (2 * AffinityBucket::kSlots);

// A slot's value: new:1 | tentative:1 | stay:10 | endpoint:20 | time:32.
inline constexpr unsigned kEndpointShift = 32, kStayShift = 52;
inline constexpr uint64_t kNew = uint64_t{1} << 63, kTentative = uint64_t{1} << 62;
inline constexpr uint64_t kEndpointMask = limits::kBackendsMax - 1;
// Marks an entry that has ended: no endpoint has this stay. The other bits are from the client's hash, so
// that another client's ended entry is not mistaken for it.
inline constexpr uint64_t kStayMask = 0x3ff;
inline constexpr uint64_t kNothing = kStayMask << kStayShift;
constexpr bool is_nothing(uint64_t value) noexcept {
    return (value & kNothing) == kNothing;
}
constexpr uint64_t nothing_of(uint64_t hash) noexcept {
    return kNothing | hash >> (64 - kStayShift);
}
static_assert(limits::kBackendsMax <= 1U << (kStayShift - kEndpointShift) &&
              std::has_single_bit(limits::kBackendsMax));
static_assert(Backend::kStays <= kStayMask);

constexpr uint64_t established(const Backend& backend, CoarseTime now) noexcept {
    return uint64_t{backend.stay} << kStayShift | uint64_t{backend.endpoint.value} << kEndpointShift |
           now.value;
}
constexpr EndpointId endpoint_of(uint64_t value) noexcept {
    return {static_cast<uint32_t>(value >> kEndpointShift & kEndpointMask)};
}
constexpr uint16_t stay_of(uint64_t value) noexcept {
    return static_cast<uint16_t>(value >> kStayShift & kStayMask);
}
constexpr CoarseTime time_of(uint64_t value) noexcept {
    return {static_cast<uint32_t>(value)};
}
constexpr bool names_same_endpoint(uint64_t a, uint64_t b) noexcept {
    return ((a ^ b) & ~(kNew | kTentative)) >> kEndpointShift == 0;
}
// The same value with another time, and without `marks`.
constexpr uint64_t refreshed_at(uint64_t value, CoarseTime now, uint64_t marks) noexcept {
    return (value & ~(marks | uint64_t{UINT32_MAX})) | now.value;
}

}  // namespace penstock::lb::detail
