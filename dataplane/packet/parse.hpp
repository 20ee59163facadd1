// The one parser: bytes -> Parsed, or the reason to drop them. Whatever it accepts, later stages read and write at the offsets it gives
// without asking again; whatever it is not sure of is either dropped by name or left to Linux.
#pragma once

#include <expected>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Whether the IPv4 header checksum is still to be verified: NICs say so per packet, most virtual ports never do.
enum class IpChecksum : uint8_t { Verify, KnownGood };

using ParseResult = std::expected<void, DropReason>;

// Fills `out` from `frame`, which starts with its Ethernet header. On a drop reason `out` holds what was read until then and is only good
// for telling people about the packet.
//
// Destinations that no Service and no route can have (multicast, 240.0.0.0/4 with the limited broadcast, 0.0.0.0, 127.0.0.0/8) make kind
// Ip, never Flow: they are the host's business, DHCP's 0.0.0.0 -> 255.255.255.255 among them. A subnet's broadcast address cannot be told
// from here; such frames come with destination_is_multicast_mac.
//
// Drop reasons: FrameTooShort, FrameShorterThanIp, BadIpHeader, BadIpChecksum, BadL4Header, MartianSource.
[[nodiscard]] ParseResult parse(ByteView frame, Parsed& out, IpChecksum ip_checksum = IpChecksum::Verify) noexcept;

}  // namespace penstock::packet
