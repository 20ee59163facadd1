// What an IP header says in words of neither family, so that one of the other can be written in its place (RFC 7915, 4.1 and 5.1): a
// packet's own, and the one of a packet that an error quotes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

// Where a fragment lies in its datagram.
struct DatagramPlace {
    uint32_t id = 0;      // IPv4 has 16 bits of it
    uint16_t offset = 0;  // in bytes; a multiple of 8
    bool has_more = false;
    bool operator==(const DatagramPlace&) const = default;
};

struct CommonHeader {
    uint8_t tos = 0;       // IPv6: traffic class
    uint8_t ttl = 0;       // IPv6: hop limit
    uint8_t protocol = 0;  // of the transport
    uint16_t payload_bytes =
        0;  // behind all IP headers, as the header tells; 0 where it tells less than its own length
    std::optional<DatagramPlace> place;  // IPv4: of a fragment. IPv6: of what has a fragment header
};

// The IP header at `ip_at`, with its options or extension headers `header_bytes` long, all of which have been found sound, in front of a
// transport header of `protocol`.
[[nodiscard]] CommonHeader read_header(IpFamily family, const uint8_t* ip_at, size_t header_bytes,
                                       uint8_t protocol) noexcept;

// From `ip_at` to the last fragment header among extension headers that reach to `header_bytes`.
[[nodiscard]] std::optional<size_t> fragment_header_in(const uint8_t* ip_at, size_t header_bytes) noexcept;

// How long `header` is in a family: without options, and with no extension header but a fragment's.
[[nodiscard]] inline size_t header_bytes_in(IpFamily family, const CommonHeader& header) noexcept {
    return family == IpFamily::V4 ? sizeof(Ipv4Header)
                                  : sizeof(Ipv6Header) + (header.place ? sizeof(Ipv6ExtensionHeader) : 0);
}

// Writes `header` as one of the addresses' family, its checksum included. IPv6: the flow label is 0. IPv4: what is no fragment has DF set
// where it exceeds 1,260 bytes, and else `id`, so that it can be cut.
void store_header(uint8_t* ip_at, const CommonHeader& header, const IpAddr& source, const IpAddr& destination,
                  uint16_t id) noexcept;

}  // namespace penstock::packet
