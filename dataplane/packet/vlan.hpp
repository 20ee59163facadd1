// VLAN tags (IEEE 802.1Q) in front of a packet. Penstock forwards between untagged ports; what carries a tag is for a VLAN interface that
// Linux has on a twin. But a tag whose VLAN id is 0 names no VLAN, it only tells the frame's priority: such a frame is an untagged one for
// everybody, and so it must be here, or a tag would lead it past what untagged packets meet.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::packet {

// A tag's own tag, as 802.1ad stacks them (QinQ). More are no standard's.
inline constexpr unsigned kVlanTagsMax = 2;

// Whether the frame's Ethernet type announces a tag, of a customer (0x8100) or of a provider (0x88a8). False for a frame without a header.
[[nodiscard]] bool is_tagged(ByteView frame) noexcept;

// Takes out the tags with VLAN id 0 that stand in front of all others, and returns the frame's new length. What follows them moves up, so
// that everything lies where untagged frames have it.
//   FrameTooShort  the frame ends inside such a tag
//   TooManyTags    there are more than kVlanTagsMax of them; the frame is spoilt
[[nodiscard]] std::expected<uint16_t, DropReason> without_priority_tags(std::span<uint8_t> frame) noexcept;

// What stands behind a frame's tags.
struct BehindTags {
    bool are_too_many = false;          // more than kVlanTagsMax: it was not looked at
    std::optional<IpAddr> source = {};  // of an IP packet; empty: it is none, or cut off
};
[[nodiscard]] BehindTags look_behind_tags(ByteView frame) noexcept;

}  // namespace penstock::packet
