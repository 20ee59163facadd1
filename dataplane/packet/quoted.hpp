// What says whose a packet is that has no L4 ports of its own: the packet that an ICMP error quotes, and the datagram that a fragment is
// of.
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// The tuple of the TCP or UDP packet in an ICMP or ICMPv6 error (RFC 792; RFC 4443, 2.4), as whoever sent the error saw it. Empty for what
// is no error, quotes another protocol, or is cut before the quoted ports, which the first eight bytes of payload hold. The error's
// checksum is not looked at. `parsed` is of `frame` and of kind Ip.
[[nodiscard]] std::optional<FlowKey> quoted_flow(ByteView frame, const Parsed& parsed) noexcept;

// The number by which the receiver tells a datagram's fragments from another's (RFC 791, 3.2; RFC 8200, 4.5). `parsed` is of `frame` and of
// kind Fragment.
[[nodiscard]] uint32_t datagram_id(ByteView frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
