// Cuts whole frames into fragments as a sender or a router does (RFC 791, 2.3; RFC 8200, 4.5), without a line of dataplane/packet. What the
// gateway sends of a datagram must be what this makes of the whole datagram as it would have been translated.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/bytes.hpp"

namespace penstock::test {

// `frame` holds an IPv4 packet without DF, or an IPv6 packet without extension headers (those that it has are cut with the rest). Each
// fragment but the last holds `bytes` of the datagram, a multiple of 8.
[[nodiscard]] std::vector<std::vector<uint8_t>> cut(ByteView frame, uint32_t id, size_t bytes);

// One fragment of any place and content. `like` gives Ethernet and IP headers, and over IPv6 the number of what the datagram begins with.
[[nodiscard]] std::vector<uint8_t> fragment_like(ByteView like, uint32_t id, size_t begin, bool more,
                                                 ByteView content);

// The identification of an IPv4 packet, or in the fragment header of an IPv6 packet; 0 where it has none.
[[nodiscard]] uint32_t id_of(ByteView frame);

// The same frame with another identification, and over IPv4 with the checksum that belongs to it.
[[nodiscard]] std::vector<uint8_t> with_id(std::vector<uint8_t> frame, uint32_t id);

}  // namespace penstock::test
