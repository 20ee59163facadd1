// The maximum segment size that a SYN offers (RFC 9293, 3.7.1): how long a segment its sender will take.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Lowers what the TCP segment with SYN in `frame` offers to `mss_max`, and moves its checksum by the difference. A SYN that offers less, or
// names no size, stays as it is: the size it then means (536, or 1220 over IPv6) is no larger than a link must carry. `parsed` is of
// `frame`, a Flow of TCP. True: it has been changed.
bool lower_mss(std::span<uint8_t> frame, const Parsed& parsed, uint16_t mss_max) noexcept;

}  // namespace penstock::packet
