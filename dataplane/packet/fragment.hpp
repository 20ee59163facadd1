// SPDX-License-Identifier: Apache-2.0
// Checks on a single fragment without the others: its position in the datagram and, for a first fragment, its
// flow. Malformed fragments, and those sent to evade a filter, have drop reasons here (RFC 1858, RFC 3128,
// RFC 8200, 4.5).
#pragma once

#include <cstdint>
#include <expected>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/rewrite.hpp"

namespace penstock::packet {

// Position of a fragment in the data that its sender has fragmented: an IPv4 packet's payload, or the bytes
// behind an IPv6 packet's fragment header.
struct FragmentRange {
    uint16_t begin = 0;  // bytes in front of it; a multiple of 8
    uint16_t end = 0;    // offset behind its last byte
    bool is_last = false;
    [[nodiscard]] constexpr bool is_first() const noexcept { return begin == 0; }
    constexpr bool operator==(const FragmentRange&) const = default;
};

// `parsed` is of `frame` and of kind Fragment. Errors:
//   BadFragment       the fragment is empty, ends beyond the longest datagram, or is not the last one and its
//                     length is not a multiple of 8 bytes, so that no fragment could follow
//   FragmentTooSmall  it would overwrite the TCP header of the first fragment
[[nodiscard]] std::expected<FragmentRange, DropReason> fragment_range(ByteView frame,
                                                                      const Parsed& parsed) noexcept;

// Makes the first fragment that `parsed` describes a Flow, by the L4 header in it. If that header is neither
// TCP's nor UDP's, it stays a Fragment. FragmentTooSmall if the header is incomplete, because neither the
// flow nor a filter's verdict can be determined (RFC 8200, 4.5 forbids such fragments, RFC 1858 calls them an
// attack). Otherwise the same errors as parse() for a whole packet.
[[nodiscard]] ParseResult read_first_fragment(ByteView frame, Parsed& parsed) noexcept;

// Rewrites a later fragment of Address's family: new addresses, TTL or hop limit minus one, and the IPv4
// header's checksum. There is no other checksum: the transport's is in the first fragment and covers the
// addresses there. TTL or hop limit is above 1; `ip` as for translate_packet().
template <WireAddress Address>
void translate_fragment(uint8_t* frame, const Parsed& parsed, const Address& source,
                        const Address& destination, [[maybe_unused]] FoldedDelta ip) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Fragment && parsed.ttl > 1);
    translate_ip<Address>(frame, parsed, source, destination, ip);
}

// Sets the identification of the IP packet in `frame`, which is untagged. IPv4: the low half of `id`, and the
// header's checksum is updated. IPv6: the packet has a fragment header, preceded at most by the extension
// headers that the parser walks.
void set_datagram_id(uint8_t* frame, uint32_t id) noexcept;

}  // namespace penstock::packet
