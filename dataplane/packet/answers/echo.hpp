// SPDX-License-Identifier: Apache-2.0
// Answers an echo request in its own buffer (RFC 792; RFC 4443, 4.2).
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Turns the echo request in the frame into its reply, and returns the new frame length. The caller has
// verified the request's checksum. Data and traffic class are kept. The TTL is new. IPv4 options, IPv6
// extension headers and Ethernet padding are removed, so a reply is never longer than its request. Ethernet
// addresses are exchanged; the forward stage sets the final ones.
[[nodiscard]] uint16_t make_echo_reply(std::span<uint8_t> frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
