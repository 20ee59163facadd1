// The one parser: bytes -> Parsed, or the reason to drop them. Whatever it accepts, later stages read and write at the offsets it gives
// without asking again; whatever it is not sure of is either dropped by name or left to Linux.
//
// What nearly every packet is (whole, TCP or UDP, between ordinary addresses, no options) is recognised in parse.cpp: each question
// that such a packet answers with yes is one comparison, and nothing is written before the last. Whatever answers one with no is read again
// from the start by parse_any.cpp, which holds all the rules. A test and the fuzzer compare the two.
#pragma once

#include <expected>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Whether the IPv4 header checksum is still to be verified: NICs say so per packet, most virtual ports never do.
enum class IpChecksum : uint8_t { Verify, KnownGood };

using ParseResult = std::expected<void, DropReason>;

// How many IPv6 extension headers are walked over. RFC 8200, 4.1 has each at most once and destination options twice, which makes five of
// the kinds that are walked; eight leave room for the odd sender and keep a hostile packet's cost near that of an ordinary one.
inline constexpr unsigned kExtensionHeadersMax = 8;

// Fills `out` from `frame`, which starts with its Ethernet header and is at most 65535 bytes long. On a drop reason `out` holds what was
// read until then and is only good for telling people about the packet.
//
// Destinations that no Service and no route can have make kind Ip, never Flow: they are the host's business. In IPv4 multicast, 240.0.0.0/4
// with the limited broadcast, 0.0.0.0/8 and 127.0.0.0/8, DHCP's 0.0.0.0 -> 255.255.255.255 among them; in IPv6 multicast, ::, ::1, and
// packets from or to a link-local address, which are not to be forwarded (RFC 4291, 2.5.6). A subnet's broadcast address cannot be told
// from here; such frames come with destination_is_multicast_mac.
//
// IPv6 extension headers are walked over: hop-by-hop and destination options, a routing header with no segment left, and the fragment
// header of a packet that is whole (RFC 6946). A routing header with segments left makes kind Ip, because the destination is not the last
// one and the transport's checksum counts the last; type 0 is dropped (RFC 5095). Other headers (AH, ESP, none) end the walk with kind Ip.
//
// Drop reasons: FrameTooShort, FrameShorterThanIp, BadIpHeader, BadL4Header, MartianSource, over IPv4 BadIpChecksum and IpOptions (a source
// route; whether other options pass is the pipeline's to decide), and over IPv6 MappedAddress, BadExtensionHeader, SourceRouted,
// NoUdpChecksum.
[[nodiscard]] ParseResult parse(ByteView frame, Parsed& out,
                                IpChecksum ip_checksum = IpChecksum::Verify) noexcept;

}  // namespace penstock::packet
