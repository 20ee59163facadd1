// What can be said of one fragment without the others: where it lies in its datagram, and of a first one, which flow's it is. Whatever no
// sender makes, or only one who wants to get around a filter, has its name here (RFC 1858, RFC 3128, RFC 8200, 4.5).
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

// A fragment's place in what its sender has cut up: an IPv4 packet's payload, or what stands behind an IPv6 packet's fragment header.
struct FragmentPlace {
    uint16_t begin = 0;  // bytes in front of it; a multiple of 8
    uint16_t end = 0;    // behind its last byte
    bool is_last = false;
    [[nodiscard]] constexpr bool is_first() const noexcept { return begin == 0; }
    constexpr bool operator==(const FragmentPlace&) const = default;
};

// BadFragment: it holds nothing, ends beyond the longest datagram, or is not the last and holds no multiple of 8 bytes, so that none could
// follow it. FragmentTooSmall: it would overwrite the TCP header of the first one. `parsed` is of `frame` and of kind Fragment.
[[nodiscard]] std::expected<FragmentPlace, DropReason> fragment_place(ByteView frame,
                                                                      const Parsed& parsed) noexcept;

// Makes the first fragment that `parsed` describes a Flow, by the L4 header in it; it stays a Fragment where that is neither TCP's nor
// UDP's. FragmentTooSmall where the header is not whole, for nobody could tell the flow, or filter by it (RFC 8200, 4.5 forbids such
// fragments, RFC 1858 calls them an attack); else the reasons that parse() has for a whole packet.
[[nodiscard]] ParseResult read_first_fragment(ByteView frame, Parsed& parsed) noexcept;

// Rewrites a later fragment, of Address's family: new addresses, one hop less, and the IPv4 header's checksum. There is no other: the
// transport's is in the first fragment and counts the addresses there. TTL or hop limit is above 1; `ip` as for translate_packet().
template <WireAddress Address>
void translate_fragment(uint8_t* frame, const Parsed& parsed, const Address& source,
                        const Address& destination, [[maybe_unused]] FoldedDelta ip) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Fragment && parsed.ttl > 1);
    translate_ip<Address>(frame, parsed, source, destination, ip);
}

// Gives the IP packet in `frame`, which is untagged, another identification, over IPv4 with its header's checksum: the low half of `id`.
// One of IPv6 has a fragment header, in front of which stand at most the extension headers that the parser walks.
void set_datagram_id(uint8_t* frame, uint32_t id) noexcept;

}  // namespace penstock::packet
