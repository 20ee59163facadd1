// What every packet that the gateway itself sends begins with.
#pragma once

#include <span>
#include <utility>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

// Linux's own default; RFC 1122 asks for a configurable one, and no operator has wished for another in a RST.
inline constexpr uint8_t kAnswerTtl = 64;

// A whole IPv4 header without options. DF is set, which makes the packet atomic, and an atomic packet's id means nothing (RFC 6864, 4.1).
[[nodiscard]] inline Ipv4Header answer_header(const IpAddr& source, const IpAddr& destination, uint8_t protocol, uint8_t tos,
                                              uint16_t total_bytes) noexcept {
    Ipv4Header ip;
    ip.tos = tos;
    ip.total_length = Be16::from_host(total_bytes);
    ip.flags_and_offset = Be16::from_host(Ipv4Header::kDontFragment);
    ip.ttl = kAnswerTtl;
    ip.protocol = protocol;
    ip.source = source.v4_wire();
    ip.destination = destination.v4_wire();
    uint8_t bytes[sizeof ip];
    store(bytes, ip);
    ip.checksum = ChecksumSum().add(ByteView(bytes)).checksum();
    return ip;
}

// Back to where the frame came from, until the forward stage knows better.
inline void exchange_ethernet(std::span<uint8_t> frame) noexcept {
    auto ethernet = load<EthernetHeader>(frame.data());
    std::swap(ethernet.source, ethernet.destination);
    store(frame.data(), ethernet);
}

}  // namespace penstock::packet
