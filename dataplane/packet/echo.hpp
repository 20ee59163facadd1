// Answering an echo request in its own buffer (RFC 792; RFC 4443, 4.2).
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Makes of the echo request in the frame, whose checksum is right, its reply, and returns the new frame's length: the data and the traffic
// class as they came, a fresh TTL, no IPv4 options or IPv6 extension headers, no Ethernet padding. So no reply is longer than its request.
// Ethernet addresses are exchanged; the forward stage sets the real ones.
[[nodiscard]] uint16_t make_echo_reply(std::span<uint8_t> frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
