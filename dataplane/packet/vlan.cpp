// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/vlan.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

constexpr size_t kTagBytes = 4;  // type, then priority and VLAN id
constexpr size_t kTypeOffset = offsetof(EthernetHeader, type);
constexpr uint16_t kCustomerTag = 0x8100, kProviderTag = 0x88a8;
constexpr uint16_t kVlanIdMask = 0x0fff;

bool is_tag(uint16_t ether_type) noexcept {
    return ether_type == kCustomerTag || ether_type == kProviderTag;
}

uint16_t type_at(ByteView frame, size_t offset) noexcept {
    return load<Be16>(frame.data() + offset).host();
}

}  // namespace

bool is_tagged(ByteView frame) noexcept {
    return frame.size() >= sizeof(EthernetHeader) && is_tag(type_at(frame, kTypeOffset));
}

std::expected<uint16_t, DropReason> without_priority_tags(std::span<uint8_t> frame) noexcept {
    size_t end = frame.size();
    for (unsigned taken = 0; is_tagged(frame.first(end)); ++taken) {
        if (end < sizeof(EthernetHeader) + kTagBytes) {
            return std::unexpected(DropReason::FrameTooShort);
        }
        if ((type_at(frame, kTypeOffset + sizeof(Be16)) & kVlanIdMask) != 0) {
            break;
        }
        if (taken == kVlanTagsMax) {
            return std::unexpected(DropReason::TooManyTags);
        }
        end -= kTagBytes;
        std::memmove(frame.data() + kTypeOffset, frame.data() + kTypeOffset + kTagBytes, end - kTypeOffset);
    }
    return static_cast<uint16_t>(end);
}

BehindTags look_behind_tags(ByteView frame) noexcept {
    size_t type = kTypeOffset;
    for (unsigned tags = 0; type + sizeof(Be16) <= frame.size() && is_tag(type_at(frame, type)); ++tags) {
        if (tags == kVlanTagsMax) {
            return {.are_too_many = true};
        }
        type += kTagBytes;
    }
    const size_t l3 = type + sizeof(Be16);
    if (l3 + sizeof(Ipv4Header) <= frame.size() && type_at(frame, type) == kEtherTypeIpv4) {
        return {.source = IpAddr::v4(load<Be32>(frame.data() + l3 + offsetof(Ipv4Header, source)))};
    }
    if (l3 + sizeof(Ipv6Header) <= frame.size() && type_at(frame, type) == kEtherTypeIpv6) {
        return {.source = IpAddr::v6(
                    load<std::array<uint8_t, 16>>(frame.data() + l3 + offsetof(Ipv6Header, source)))};
    }
    return {};
}

}  // namespace penstock::packet
