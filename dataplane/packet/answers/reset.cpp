// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/answers/reset.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/answer.hpp"

namespace penstock::packet {

SegmentNumbers numbers_behind(const uint8_t* frame, const Parsed& parsed) noexcept {
    const auto tcp = load<TcpHeader>(frame + parsed.l4_offset);
    const auto payload_bytes =
        static_cast<uint32_t>(parsed.l3_offset + parsed.l3_length - parsed.payload_offset);
    const TcpFlags flags{tcp.flags};
    const uint32_t occupied =
        payload_bytes + (flags.has(TcpFlags::kSyn) ? 1U : 0U) + (flags.has(TcpFlags::kFin) ? 1U : 0U);
    return {tcp.seq.host() + occupied, tcp.ack.host()};
}

uint16_t build_segment(std::span<uint8_t> frame, const FlowKey& key, SegmentNumbers numbers,
                       TcpFlags flags) noexcept {
    PENSTOCK_ASSERT(frame.size() >= kBareSegmentBytesMax && key.protocol == Protocol::Tcp);
    const IpFamily family = key.source.family();
    EthernetHeader ethernet{};
    ethernet.type = Be16::from_host(family == IpFamily::V4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
    store(frame.data(), ethernet);
    uint8_t* const ip_at = frame.data() + sizeof ethernet;
    uint8_t* const tcp_at = ip_at + answer_header_bytes(family);
    constexpr auto kTcp = static_cast<uint8_t>(Protocol::Tcp);
    store_answer_header(ip_at, key.source, key.destination, kTcp, 0, sizeof(TcpHeader));

    TcpHeader tcp;
    tcp.source_port = Be16::from_host(key.source_port);
    tcp.destination_port = Be16::from_host(key.destination_port);
    tcp.seq = Be32::from_host(numbers.seq);
    tcp.ack = Be32::from_host(numbers.ack);
    tcp.flags = flags.bits;
    store(tcp_at, tcp);
    tcp.checksum = ChecksumSum()
                       .add_pseudo_header(key.source, key.destination, kTcp, sizeof tcp)
                       .add(ByteView(tcp_at, sizeof tcp))
                       .checksum();
    store(tcp_at, tcp);
    return static_cast<uint16_t>(tcp_at + sizeof tcp - frame.data());
}

}  // namespace penstock::packet
