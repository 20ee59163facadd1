// SPDX-License-Identifier: Apache-2.0
// VLAN tags (IEEE 802.1Q) in front of a packet. Penstock forwards between untagged ports; tagged frames are
// for a VLAN interface that Linux has on a twin. A tag with VLAN id 0 names no VLAN and only carries the
// frame's priority. Every receiver treats such a frame as untagged, and so does the gateway. Otherwise a tag
// would let a frame bypass the checks on untagged packets.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::packet {

// One tag behind another, as 802.1ad stacks them (QinQ). No standard defines more.
inline constexpr unsigned kVlanTagsMax = 2;

// Whether the frame's Ethernet type is a tag, of a customer (0x8100) or of a provider (0x88a8). False for a
// frame without a complete Ethernet header.
[[nodiscard]] bool is_tagged(ByteView frame) noexcept;

// Removes the leading tags with VLAN id 0, and returns the frame's new length. The bytes behind them move up,
// so that all offsets are those of an untagged frame.
//   FrameTooShort  the frame ends inside such a tag
//   TooManyTags    there are more than kVlanTagsMax of them; the frame's content is then undefined
[[nodiscard]] std::expected<uint16_t, DropReason> without_priority_tags(std::span<uint8_t> frame) noexcept;

// The result of examining the packet behind a frame's tags.
struct BehindTags {
    bool are_too_many = false;          // more than kVlanTagsMax: the packet was not examined
    std::optional<IpAddr> source = {};  // of an IP packet; empty if it is not IP or is truncated
};
[[nodiscard]] BehindTags look_behind_tags(ByteView frame) noexcept;

}  // namespace penstock::packet
