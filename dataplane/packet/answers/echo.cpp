// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/answers/echo.hpp"

#include <cstring>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/answer.hpp"

namespace penstock::packet {
namespace {

uint8_t traffic_class(const uint8_t* ip_at, IpFamily family) noexcept {
    if (family == IpFamily::V4) {
        return ip_at[offsetof(Ipv4Header, tos)];
    }
    return static_cast<uint8_t>(load<Be32>(ip_at + offsetof(Ipv6Header, version_class_flow)).host() >> 20);
}

}  // namespace

uint16_t make_echo_reply(std::span<uint8_t> frame, const Parsed& parsed) noexcept {
    const bool is_v4 = parsed.family == IpFamily::V4;
    const auto icmp_bytes = static_cast<uint16_t>(parsed.l3_offset + parsed.l3_length - parsed.l4_offset);
    const uint16_t ip_header_bytes = answer_header_bytes(parsed.family);
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Ip && size_t{parsed.l4_offset} + icmp_bytes <= frame.size() &&
                    icmp_bytes >= sizeof(IcmpHeader));
    uint8_t* const ip_at = frame.data() + parsed.l3_offset;
    const uint8_t tos = traffic_class(ip_at, parsed.family);
    uint8_t* const icmp_at = ip_at + ip_header_bytes;
    std::memmove(icmp_at, frame.data() + parsed.l4_offset, icmp_bytes);

    // Of the summed bytes only the type changes; the two addresses of the pseudo-header are exchanged, which
    // leaves the sum equal.
    const auto request = load<Be16>(icmp_at);
    icmp_at[offsetof(IcmpHeader, type)] = is_v4 ? kIcmpEchoReply : kIcmpv6EchoReply;
    uint8_t* const sum_at = icmp_at + offsetof(IcmpHeader, checksum);
    const Be16 sum = ChecksumDelta().replace(request, load<Be16>(icmp_at)).applied_to(load<Be16>(sum_at));
    // An incremental update cannot distinguish the two representations of zero. In a reply of zeros only
    // 0xffff is valid; in any other reply both are.
    store(sum_at, sum.raw() == 0 ? Be16::from_raw(0xffff) : sum);
    store_answer_header(ip_at, parsed.key.destination, parsed.key.source, is_v4 ? kProtoIcmp : kProtoIcmpv6,
                        tos, icmp_bytes);
    exchange_ethernet(frame);
    return static_cast<uint16_t>(parsed.l3_offset + ip_header_bytes + icmp_bytes);
}

}  // namespace penstock::packet
