// SPDX-License-Identifier: Apache-2.0
// The maximum segment size that a SYN offers (RFC 9293, 3.7.1): the longest segment that its sender accepts.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Lowers the MSS that the TCP segment with SYN in `frame` offers to `mss_max`, and updates its checksum. A
// SYN that offers less, or has no MSS option, is unchanged: the default it then implies (536, or 1220 over
// IPv6) is no larger than what every link must carry. `parsed` is of `frame`, a Flow of TCP. Returns true if
// the segment was changed.
bool lower_mss(std::span<uint8_t> frame, const Parsed& parsed, uint16_t mss_max) noexcept;

}  // namespace penstock::packet
