// SPDX-License-Identifier: Apache-2.0
// Wire formats of headers. A header is copied out of a frame with load<T>() and back with store(): frames
// have no alignment, and a pointer cast into them would be undefined behaviour. Single fields are accessed by
// offsetof, after the parser has checked that they are present.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::packet {

struct EthernetHeader {
    MacAddr destination;
    MacAddr source;
    Be16 type;
};
static_assert(sizeof(EthernetHeader) == 14);

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;

// For an untagged frame with a complete header.
[[nodiscard]] inline uint16_t ether_type(const uint8_t* frame) noexcept {
    return load<Be16>(frame + offsetof(EthernetHeader, type)).host();
}

// Minimum MTU of every link, in IP bytes (RFC 791, 3.2; RFC 8200, 5).
inline constexpr uint16_t kIpv4MtuMin = 68, kIpv6MtuMin = 1280;

// RFC 791, 3.1. Options follow if header_bytes() exceeds sizeof.
struct Ipv4Header {
    uint8_t version_and_words = 0x45;
    uint8_t tos = 0;
    Be16 total_length;
    Be16 id;
    Be16 flags_and_offset;
    uint8_t ttl = 0;
    uint8_t protocol = 0;
    Be16 checksum;
    Be32 source;
    Be32 destination;

    static constexpr uint16_t kDontFragment = 0x4000, kMoreFragments = 0x2000, kOffsetMask = 0x1fff;

    constexpr uint8_t version() const noexcept { return version_and_words >> 4; }
    constexpr uint16_t header_bytes() const noexcept {
        return static_cast<uint16_t>((version_and_words & 0x0f) * 4);
    }
    constexpr bool is_fragment() const noexcept {
        return (flags_and_offset.host() & (kMoreFragments | kOffsetMask)) != 0;
    }
};
static_assert(sizeof(Ipv4Header) == 20 && offsetof(Ipv4Header, checksum) == 10 &&
              offsetof(Ipv4Header, destination) == 16);

// RFC 8200, 3. Extension headers may be present between it and the transport header.
struct Ipv6Header {
    Be32 version_class_flow = Be32::from_host(0x6000'0000);  // 4, 8 and 20 bits
    Be16 payload_length;                                     // of everything behind this header
    uint8_t next_header = 0;
    uint8_t hop_limit = 0;
    std::array<uint8_t, 16> source{};
    std::array<uint8_t, 16> destination{};

    constexpr uint8_t version() const noexcept {
        return static_cast<uint8_t>(version_class_flow.host() >> 28);
    }
};
static_assert(sizeof(Ipv6Header) == 40 && offsetof(Ipv6Header, hop_limit) == 7 &&
              offsetof(Ipv6Header, destination) == 24);

// The unit of fragment offsets in bytes (RFC 791, 3.1; RFC 8200, 4.5). An IPv6 fragment header has three
// other bits below the offset.
inline constexpr uint16_t kFragmentUnitBytes = 8;

// Headers that may follow an IPv6 header, by their number in next_header (RFC 8200, 4). Every kind that is
// walked begins with the same two bytes. `rest` is a routing header's type and segments left, or a fragment
// header's offset.
struct Ipv6ExtensionHeader {
    static constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestinationOptions = 60;
    static constexpr uint16_t kMoreFragments = 0x0001, kOffsetMask = 0xfff8;

    uint8_t next_header = 0;
    uint8_t units_behind_first = 0;  // of 8 bytes; reserved in a fragment header, which is one unit
    Be16 rest;
    Be32 more;

    constexpr size_t bytes() const noexcept { return (size_t{units_behind_first} + 1) * 8; }
    constexpr uint8_t routing_type() const noexcept { return static_cast<uint8_t>(rest.host() >> 8); }
    constexpr uint8_t segments_left() const noexcept { return static_cast<uint8_t>(rest.host()); }
    constexpr bool is_fragment() const noexcept {
        return (rest.host() & (kMoreFragments | kOffsetMask)) != 0;
    }
};
static_assert(sizeof(Ipv6ExtensionHeader) == 8);

// RFC 9293, 3.1. Options follow if header_bytes() exceeds sizeof.
struct TcpHeader {
    Be16 source_port;
    Be16 destination_port;
    Be32 seq;
    Be32 ack;
    uint8_t words_and_reserved = 0x50;
    uint8_t flags = 0;
    Be16 window;
    Be16 checksum;
    Be16 urgent;

    constexpr uint16_t header_bytes() const noexcept {
        return static_cast<uint16_t>((words_and_reserved >> 4) * 4);
    }
};
static_assert(sizeof(TcpHeader) == 20 && offsetof(TcpHeader, flags) == 13 &&
              offsetof(TcpHeader, checksum) == 16);

// RFC 768.
struct UdpHeader {
    Be16 source_port;
    Be16 destination_port;
    Be16 length;
    Be16 checksum;
};
static_assert(sizeof(UdpHeader) == 8 && offsetof(UdpHeader, checksum) == 6);

// RFC 9260, 3.1 and 3.2: the common header, and the header of each chunk behind it.
struct SctpHeader {
    Be16 source_port;
    Be16 destination_port;
    Be32 verification_tag;
    // The only field of RFC 9260 in little-endian byte order (appendix A).
    uint32_t checksum = 0;
};
static_assert(sizeof(SctpHeader) == 12 && offsetof(SctpHeader, verification_tag) == 4 &&
              offsetof(SctpHeader, checksum) == 8);

struct SctpChunkHeader {
    static constexpr uint8_t kData = 0, kInit = 1, kInitAck = 2, kAbort = 6, kShutdown = 7, kShutdownAck = 8,
                             kCookieEcho = 10, kCookieAck = 11, kShutdownComplete = 14;
    static constexpr uint8_t kInterleavedData = 64;  // RFC 8260
    static constexpr uint8_t kReflectsTag = 0x01;    // the T bit of ABORT and SHUTDOWN COMPLETE

    uint8_t type = 0;
    uint8_t flags = 0;
    Be16 length;  // including this header, excluding padding
};
static_assert(sizeof(SctpChunkHeader) == 4);

// The fields behind the header of INIT and INIT ACK (RFC 9260, 3.3.2).
struct SctpInitFields {
    Be32 initiate_tag;
    Be32 receiver_window;
    Be16 outbound_streams;
    Be16 inbound_streams;
    Be32 initial_tsn;
};
static_assert(sizeof(SctpInitFields) == 16);

inline constexpr uint8_t kIcmpEchoReply = 0, kIcmpEchoRequest = 8;          // RFC 792
inline constexpr uint8_t kIcmpv6EchoRequest = 128, kIcmpv6EchoReply = 129;  // RFC 4443, 4

// RFC 792 and RFC 4443; `rest` depends on the type.
struct IcmpHeader {
    uint8_t type = 0;
    uint8_t code = 0;
    Be16 checksum;
    Be32 rest;
};
static_assert(sizeof(IcmpHeader) == 8);

}  // namespace penstock::packet
