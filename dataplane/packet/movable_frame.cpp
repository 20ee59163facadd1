// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/movable_frame.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

std::expected<void, DropReason> replace_headers(MovableFrame& frame, size_t payload_at, IpFamily family,
                                                size_t header_bytes, size_t payload_bytes) noexcept {
    const size_t front_bytes = sizeof(EthernetHeader) + header_bytes;
    if (front_bytes + payload_bytes > UINT16_MAX) {
        return std::unexpected(DropReason::PacketTooBig);
    }
    if (front_bytes > payload_at + frame.headroom) {
        return std::unexpected(DropReason::NoBuffer);
    }
    PENSTOCK_ASSERT(payload_at >= sizeof(EthernetHeader) && payload_at + payload_bytes <= frame.capacity);
    auto ethernet = load<EthernetHeader>(frame.data);
    ethernet.type = Be16::from_host(family == IpFamily::V4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
    const auto earlier = static_cast<int32_t>(front_bytes) - static_cast<int32_t>(payload_at);
    frame.data -= earlier;
    frame.headroom = static_cast<uint16_t>(frame.headroom - earlier);
    frame.capacity = static_cast<uint16_t>(frame.capacity + earlier);
    frame.length = static_cast<uint16_t>(front_bytes + payload_bytes);
    store(frame.data, ethernet);
    return {};
}

}  // namespace penstock::packet
