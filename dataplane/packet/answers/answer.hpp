// SPDX-License-Identifier: Apache-2.0
// The IP header of packets that the gateway originates (echo replies, ICMP errors, RSTs, ABORTs, BFD).
#pragma once

#include <span>
#include <utility>

#include "dataplane/base/check.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

// Linux's default. RFC 1122 requires it to be configurable; no operator has needed another value in a RST.
inline constexpr uint8_t kAnswerTtl = 64;

// Size of the IP header of an answer: no options, no extension headers.
[[nodiscard]] constexpr uint16_t answer_header_bytes(IpFamily family) noexcept {
    return family == IpFamily::V4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
}

// Writes this header for a packet from `source` to `destination`, both of one family, followed by
// `payload_bytes`. `tos` is also IPv6's traffic class.
inline void store_answer_header(uint8_t* ip_at, const IpAddr& source, const IpAddr& destination,
                                uint8_t protocol, uint8_t tos, uint16_t payload_bytes,
                                uint8_t ttl = kAnswerTtl) noexcept {
    PENSTOCK_ASSERT(source.family() == destination.family());
    if (source.is_v4()) {
        Ipv4Header ip;
        ip.tos = tos;
        ip.total_length = Be16::from_host(static_cast<uint16_t>(sizeof ip + payload_bytes));
        // DF makes the packet atomic, and the id of an atomic packet has no meaning (RFC 6864, 4.1).
        ip.flags_and_offset = Be16::from_host(Ipv4Header::kDontFragment);
        ip.ttl = ttl;
        ip.protocol = protocol;
        ip.source = source.v4_wire();
        ip.destination = destination.v4_wire();
        uint8_t bytes[sizeof ip];
        store(bytes, ip);
        ip.checksum = ChecksumSum().add(ByteView(bytes)).checksum();
        store(ip_at, ip);
    } else {
        Ipv6Header ip;
        ip.version_class_flow = Be32::from_host(0x6000'0000U | uint32_t{tos} << 20);
        ip.payload_length = Be16::from_host(payload_bytes);
        ip.next_header = protocol;
        ip.hop_limit = ttl;
        ip.source = source.bytes();
        ip.destination = destination.bytes();
        store(ip_at, ip);
    }
}

// Exchanges the Ethernet addresses: back to the sender of the frame, until the forward stage sets the next
// hop's address.
inline void exchange_ethernet(std::span<uint8_t> frame) noexcept {
    auto ethernet = load<EthernetHeader>(frame.data());
    std::swap(ethernet.source, ethernet.destination);
    store(frame.data(), ethernet);
}

}  // namespace penstock::packet
