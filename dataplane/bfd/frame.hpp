// SPDX-License-Identifier: Apache-2.0
// BFD control packets as frames (RFC 5881, 4; RFC 5883, 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/bytes.hpp"
#include "dataplane/bfd/control_packet.hpp"
#include "dataplane/bfd/engine.hpp"
#include "dataplane/bfd/session.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::bfd {

inline constexpr size_t kFrameBytesMax = sizeof(packet::EthernetHeader) + sizeof(packet::Ipv6Header) +
                                         sizeof(packet::UdpHeader) + kControlPacketBytes;

// Writes the whole frame to `frame`, which has room for kFrameBytesMax. Ethernet addresses are zero; the next
// hop determines them. Returns its length.
uint16_t build_frame(std::span<uint8_t> frame, const Terms& terms, const ControlPacket& packet) noexcept;

struct Received {
    ControlPacket packet;
    Origin origin;
};
// A BFD control packet in a received frame, which parse() has accepted as `parsed`. Empty: it is none, is
// invalid by itself, or its UDP checksum is wrong.
[[nodiscard]] std::optional<Received> read_frame(ByteView frame, const packet::Parsed& parsed,
                                                 NicPortId port) noexcept;

}  // namespace penstock::bfd
