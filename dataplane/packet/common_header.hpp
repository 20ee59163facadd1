// SPDX-License-Identifier: Apache-2.0
// The fields of an IP header in a form independent of the family, so that a header of the other family can
// replace it (RFC 7915, 4.1 and 5.1). Used for a packet's own header and for the header of a packet that an
// ICMP error quotes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

// The fields of a header that place a fragment in its datagram.
struct FragmentFields {
    uint32_t id = 0;      // 16 bits in IPv4
    uint16_t offset = 0;  // in bytes; a multiple of 8
    bool has_more = false;
    bool operator==(const FragmentFields&) const = default;
};

struct CommonHeader {
    uint8_t tos = 0;       // IPv6: traffic class
    uint8_t ttl = 0;       // IPv6: hop limit
    uint8_t protocol = 0;  // of the transport
    // Bytes behind all IP headers, derived from the length field. 0 if that length is less than the headers'.
    uint16_t payload_bytes = 0;
    std::optional<FragmentFields>
        fragment;  // IPv4: of a fragment. IPv6: of any packet with a fragment header
};

// Reads the IP header at `ip_at` in front of a transport header of `protocol`. `header_bytes` includes
// options or extension headers, all of which have been validated.
[[nodiscard]] CommonHeader read_header(IpFamily family, const uint8_t* ip_at, size_t header_bytes,
                                       uint8_t protocol) noexcept;

// Offset from `ip_at` of the last fragment header among extension headers that reach to `header_bytes`.
[[nodiscard]] std::optional<size_t> fragment_header_in(const uint8_t* ip_at, size_t header_bytes) noexcept;

// Size of `header` in a family: without options, and with no extension header except a fragment header.
[[nodiscard]] inline size_t header_bytes_in(IpFamily family, const CommonHeader& header) noexcept {
    return family == IpFamily::V4 ? sizeof(Ipv4Header)
                                  : sizeof(Ipv6Header) + (header.fragment ? sizeof(Ipv6ExtensionHeader) : 0);
}

// Writes `header` in the family of the addresses, including the IPv4 checksum. IPv6: the flow label is 0.
// IPv4: a packet that is not a fragment has DF set if it exceeds 1,260 bytes; otherwise it gets `id`, so that
// it can be fragmented.
void store_header(uint8_t* ip_at, const CommonHeader& header, const IpAddr& source, const IpAddr& destination,
                  uint16_t id) noexcept;

}  // namespace penstock::packet
