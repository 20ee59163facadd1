// SPDX-License-Identifier: Apache-2.0
// Cuts whole frames into fragments as a sender or a router does (RFC 791, 2.3; RFC 8200, 4.5), independently
// of dataplane/packet. The fragments that the gateway sends of a datagram must equal the fragments cut here
// from the whole translated datagram.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/bytes.hpp"

namespace penstock::test {

// `frame` holds an IPv4 packet without DF, or an IPv6 packet without extension headers (existing ones are cut
// with the rest). Each fragment except the last holds `bytes` of the datagram, a multiple of 8.
[[nodiscard]] std::vector<std::vector<uint8_t>> cut(ByteView frame, uint32_t id, size_t bytes);

// One fragment of any offset and content. `like` provides Ethernet and IP headers, and over IPv6 the number
// of the first header in the datagram.
[[nodiscard]] std::vector<uint8_t> fragment_like(ByteView like, uint32_t id, size_t begin, bool more,
                                                 ByteView content);

// The identification of an IPv4 packet, or of the fragment header of an IPv6 packet; 0 if it has none.
[[nodiscard]] uint32_t id_of(ByteView frame);

// The same frame with another identification, and over IPv4 with the matching checksum.
[[nodiscard]] std::vector<uint8_t> with_id(std::vector<uint8_t> frame, uint32_t id);

}  // namespace penstock::test
