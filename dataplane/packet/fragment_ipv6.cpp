// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/fragment_ipv6.hpp"

#include <algorithm>

#include "dataplane/base/check.hpp"

namespace penstock::packet {

std::optional<Ipv6Fragments> Ipv6Fragments::of(ByteView packet, uint16_t mtu) noexcept {
    PENSTOCK_ASSERT(packet.size() >= sizeof(Ipv6Header));
    Ipv6Fragments made;
    made.header_ = load<Ipv6Header>(packet.data());
    const uint16_t behind = made.header_.payload_length.host();
    PENSTOCK_ASSERT(packet.size() - sizeof(Ipv6Header) >= behind);
    if (made.header_.next_header != Ipv6ExtensionHeader::kFragment || behind < sizeof(Ipv6ExtensionHeader) ||
        mtu < Ipv6Fragment::header_bytes + kFragmentUnitBytes) {
        return std::nullopt;
    }
    made.fragment_ = load<Ipv6ExtensionHeader>(packet.data() + sizeof(Ipv6Header));
    made.payload_ = static_cast<uint16_t>(behind - sizeof(Ipv6ExtensionHeader));
    // Ends beyond the longest datagram: the offsets of its pieces would wrap around to 0.
    if (uint32_t{made.payload_} + (made.fragment_.rest.host() & Ipv6ExtensionHeader::kOffsetMask) >
        UINT16_MAX) {
        return std::nullopt;
    }
    const auto room = static_cast<uint16_t>(mtu - Ipv6Fragment::header_bytes);
    made.most_ = static_cast<uint16_t>(room - room % kFragmentUnitBytes);
    made.count_ = std::max<uint32_t>(1, (uint32_t{made.payload_} + made.most_ - 1) / made.most_);
    if (made.count_ > kFragmentsMax) {
        return std::nullopt;
    }
    return made;
}

Ipv6Fragment Ipv6Fragments::at(uint32_t number) const noexcept {
    PENSTOCK_ASSERT(number < count_);
    const auto begins_at = static_cast<uint16_t>(number * most_);
    Ipv6Fragment made;
    made.payload_at = static_cast<uint16_t>(Ipv6Fragment::header_bytes + begins_at);
    made.payload_bytes = static_cast<uint16_t>(std::min<uint32_t>(most_, payload_ - begins_at));
    Ipv6Header header = header_;
    header.payload_length =
        Be16::from_host(static_cast<uint16_t>(sizeof(Ipv6ExtensionHeader) + made.payload_bytes));
    Ipv6ExtensionHeader fragment = fragment_;
    const bool has_more = number + 1 < count_;
    fragment.rest = Be16::from_host(static_cast<uint16_t>(
        (fragment.rest.host() + begins_at) | (has_more ? Ipv6ExtensionHeader::kMoreFragments : 0)));
    store(made.header.data(), header);
    store(made.header.data() + sizeof header, fragment);
    return made;
}

}  // namespace penstock::packet
