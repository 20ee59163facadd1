// Taking a translation back: what an ICMP error quotes must be the packet as its sender sent it, because by the quoted tuple the sender
// finds the socket that the error is for (RFC 1122, 3.2.2). A packet may turn out not to fit its way only when it is translated.
#pragma once

#include <span>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Makes of the Flow in `frame`, which was translated as rewrite.hpp does it and which `parsed` describes as it arrived, what arrived:
// addresses, ports, TTL or hop limit, and checksums, a wrong one included. Only the other spelling of a zero sum is not brought back
// (checksum.hpp), which no stack sends.
void restore(std::span<uint8_t> frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
