// SPDX-License-Identifier: Apache-2.0
// The Internet checksum: full sums (RFC 1071), incremental updates (RFC 1624), and UDP's special meaning of
// zero (RFC 768).
//
// One's-complement addition is independent of the byte order as long as all words share one (RFC 1071, 2.B).
// So everything here adds words as they lie in memory, without byte swaps.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::packet {

namespace detail {
// 2^16 is 1 modulo 0xffff, so the four words of `sum` may be added to one another. The result is 0 only for
// 0.
//
// The rotation adds the halves in exchanged order. The lower half then carries exactly what the upper half
// loses at the top, so the upper half ends as the end-around sum of both. Each step is one rotation and one
// addition, and a second carry never occurs.
constexpr uint16_t fold(uint32_t sum) noexcept {
    return static_cast<uint16_t>((sum + std::rotl(sum, 16)) >> 16);
}
constexpr uint16_t fold(uint64_t sum) noexcept {
    return fold(static_cast<uint32_t>((sum + std::rotl(sum, 32)) >> 32));
}
}  // namespace detail

// A sum in progress. Terms of a packet's size cannot overflow it: 2^16 bytes are 2^14 terms below 2^32.
class ChecksumSum {
 public:
    constexpr ChecksumSum& add(Be16 word) noexcept { return sum_ += word.raw(), *this; }
    constexpr ChecksumSum& add(Be32 words) noexcept { return sum_ += words.raw(), *this; }
    // Adds bytes that begin at an even offset. An odd count is padded with a zero byte, so such a piece must
    // be the last.
    ChecksumSum& add(ByteView bytes) noexcept;
    // Adds the pseudo-header of TCP and UDP (RFC 9293, 3.1; RFC 8200, 8.1). Both addresses are of one family.
    ChecksumSum& add_pseudo_header(const IpAddr& source, const IpAddr& destination, uint8_t protocol,
                                   uint16_t l4_bytes) noexcept;

    // The value for the checksum field. The field must have been 0 or left out while adding.
    [[nodiscard]] constexpr Be16 checksum() const noexcept {
        return Be16::from_raw(static_cast<uint16_t>(~detail::fold(sum_)));
    }
    // Whether bytes that were added together with their checksum agree with it. Both representations of zero
    // pass.
    [[nodiscard]] constexpr bool is_valid() const noexcept { return detail::fold(sum_) == 0xffff; }

 private:
    uint64_t sum_ = 0;
};

// Incremental update of a checksum: several changed fields, one fold. HC' = ~(~HC + ~m + m'), equation 3 of
// RFC 1624. This is the equation that keeps a correct sum correct when it becomes zero.
class ChecksumDelta {
 public:
    constexpr ChecksumDelta& replace(Be16 before, Be16 after) noexcept {
        return sum_ += uint64_t{static_cast<uint16_t>(~before.raw())} + after.raw(), *this;
    }
    constexpr ChecksumDelta& replace(Be32 before, Be32 after) noexcept {
        return sum_ += uint64_t{~before.raw()} + after.raw(), *this;
    }
    // An IPv6 address.
    ChecksumDelta& replace(const std::array<uint8_t, 16>& before,
                           const std::array<uint8_t, 16>& after) noexcept {
        for (size_t at = 0; at < before.size(); at += sizeof(Be32)) {
            replace(load<Be32>(before.data() + at), load<Be32>(after.data() + at));
        }
        return *this;
    }

    ChecksumDelta& add(const ChecksumDelta& other) noexcept { return sum_ += other.sum_, *this; }

    // The checksum of the changed bytes if it was `sent` before the change. A wrong sum stays wrong by the
    // same difference.
    [[nodiscard]] constexpr Be16 applied_to(Be16 sent) const noexcept {
        const uint64_t complement = static_cast<uint16_t>(~sent.raw());
        return Be16::from_raw(static_cast<uint16_t>(~detail::fold(complement + sum_)));
    }

 private:
    friend class FoldedDelta;
    uint64_t sum_ = 0;
};

// A ChecksumDelta in two bytes, for storage: the amount that every packet of a flow adds to a sum, computed
// once when the flow is set up.
//
// "No change" is represented by 0xffff, never by 0. The sum under a checksum can then become 0xffff but not
// 0, so the checksum can become 0 but not 0xffff. A full computation gives the same representation, so a
// canonical checksum stays canonical (RFC 1624, 3).
class FoldedDelta {
 public:
    constexpr FoldedDelta() = default;  // changes nothing
    constexpr explicit FoldedDelta(ChecksumDelta delta) noexcept : raw_(spell(detail::fold(delta.sum_))) {}

    // The delta that undoes this one. It is for the opposite direction: its packets carry the translated
    // values.
    [[nodiscard]] constexpr FoldedDelta inverse() const noexcept {
        return FoldedDelta(spell(static_cast<uint16_t>(~raw_)));
    }
    // inverse() if `condition` is 1, this delta if it is 0. Branch-free.
    [[nodiscard]] constexpr FoldedDelta inverse_if(uint16_t condition) const noexcept {
        return FoldedDelta(spell(static_cast<uint16_t>(raw_ ^ -condition)));
    }
    // Both changes at once.
    [[nodiscard]] constexpr FoldedDelta operator+(FoldedDelta other) const noexcept {
        return FoldedDelta(detail::fold(uint32_t{raw_} + other.raw_));
    }
    // As ChecksumDelta::applied_to.
    [[nodiscard]] constexpr Be16 applied_to(Be16 sent) const noexcept {
        return Be16::from_raw(
            static_cast<uint16_t>(~detail::fold(uint32_t{static_cast<uint16_t>(~sent.raw())} + raw_)));
    }
    [[nodiscard]] constexpr uint16_t raw() const noexcept { return raw_; }
    constexpr bool operator==(const FoldedDelta&) const = default;

 private:
    constexpr explicit FoldedDelta(uint16_t raw) noexcept : raw_(raw) {}
    static constexpr uint16_t spell(uint16_t sum) noexcept { return sum == 0 ? 0xffff : sum; }
    uint16_t raw_ = 0xffff;
};
static_assert(sizeof(FoldedDelta) == 2);

// A computed UDP sum of zero is sent as 0xffff, because zero in the field means "none sent" (RFC 768).
[[nodiscard]] constexpr Be16 udp_checksum_field(Be16 computed) noexcept {
    return computed.raw() == 0 ? Be16::from_raw(0xffff) : computed;
}

// Over IPv4 a zero UDP checksum means that none was sent, so zero stays (NAT-001). Over IPv6 the parser has
// already rejected zero (RFC 8200, 8.1).
template <typename Delta>
[[nodiscard]] constexpr Be16 udp_checksum_after(Be16 sent, Delta delta) noexcept {
    return sent.raw() == 0 ? sent : udp_checksum_field(delta.applied_to(sent));
}

}  // namespace penstock::packet
