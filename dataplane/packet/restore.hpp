// SPDX-License-Identifier: Apache-2.0
// Reverts a translation. The packet that an ICMP error quotes must be as its sender sent it, because the
// sender uses the quoted tuple to find the socket for the error (RFC 1122, 3.2.2). Whether a packet exceeds
// the MTU may only be known after its translation.
#pragma once

#include <span>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Restores the Flow in `frame`, which was translated as in rewrite.hpp, to the packet that arrived and that
// `parsed` describes: addresses, ports, TTL or hop limit, and checksums, including wrong ones. Only the
// non-canonical representation of a zero sum (checksum.hpp), which no stack sends, is not restored.
void restore(std::span<uint8_t> frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
