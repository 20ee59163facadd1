// SPDX-License-Identifier: Apache-2.0
// The frame that the benches send: a 64-byte UDP packet (60 bytes without the FCS) with its flow number and
// its time of sending.
//
//   0        14      34    42      48      54     58    60
//   Ethernet | IPv4 | UDP | time | ~time | flow | run |
//
// The time is stored twice, the second time as its complement, so the sum of these words is constant. An
// endpoint can therefore set a new time, and swap addresses and ports, without changing the checksum.
// Checksums are real, because with a zero the gateway would skip its checksum update.
#pragma once

#include <cstdint>
#include <cstring>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::perf {

inline constexpr uint32_t kFrameBytes = 60;
inline constexpr uint32_t kIpAt = sizeof(packet::EthernetHeader);
inline constexpr uint32_t kUdpAt = kIpAt + sizeof(packet::Ipv4Header);
inline constexpr uint32_t kTimeAt = kUdpAt + sizeof(packet::UdpHeader);
inline constexpr uint32_t kTimeBytes = 6;  // 48 bits of ticks wrap once in a day
inline constexpr uint32_t kFlowAt = kTimeAt + 2 * kTimeBytes;
inline constexpr uint32_t kRunAt = kFlowAt + sizeof(uint32_t);
static_assert(kRunAt + sizeof(uint16_t) == kFrameBytes);
inline constexpr uint64_t kTimeMask = (uint64_t{1} << (8 * kTimeBytes)) - 1;

// One direction of a flow, host order.
struct Tuple {
    uint32_t source = 0, destination = 0;
    uint16_t source_port = 0, destination_port = 0;
    bool operator==(const Tuple&) const = default;
};

[[nodiscard]] inline Tuple tuple_of(const uint8_t* frame) noexcept {
    const auto ip = load<packet::Ipv4Header>(frame + kIpAt);
    const auto udp = load<packet::UdpHeader>(frame + kUdpAt);
    return {ip.source.host(), ip.destination.host(), udp.source_port.host(), udp.destination_port.host()};
}
[[nodiscard]] inline uint32_t flow_of(const uint8_t* frame) noexcept {
    return load<uint32_t>(frame + kFlowAt);
}
[[nodiscard]] inline uint16_t run_of(const uint8_t* frame) noexcept {
    return load<uint16_t>(frame + kRunAt);
}
[[nodiscard]] inline uint64_t time_of(const uint8_t* frame) noexcept {
    return load<uint64_t>(frame + kTimeAt) & kTimeMask;
}
inline void put_time(uint8_t* frame, uint64_t ticks) noexcept {
    const uint64_t complement = ~ticks;
    std::memcpy(frame + kTimeAt, &ticks, kTimeBytes);
    std::memcpy(frame + kTimeAt + kTimeBytes, &complement, kTimeBytes);
}

// True for a frame of the benches, false for other frames that a gateway sends (ARP, an ICMP error).
[[nodiscard]] inline bool is_ours(const uint8_t* frame, uint32_t length) noexcept {
    return length == kFrameBytes && load<Be16>(frame + 12).host() == packet::kEtherTypeIpv4 &&
           frame[kIpAt] == 0x45 && frame[kIpAt + 9] == 17;
}

// Both checksums, computed from the bytes.
[[nodiscard]] inline bool has_valid_checksums(const uint8_t* frame) noexcept {
    const auto ip = load<packet::Ipv4Header>(frame + kIpAt);
    packet::ChecksumSum header, datagram;
    header.add(ByteView(frame + kIpAt, sizeof(packet::Ipv4Header)));
    datagram.add(ip.source)
        .add(ip.destination)
        .add(Be16::from_host(17))
        .add(Be16::from_host(kFrameBytes - kUdpAt));
    datagram.add(ByteView(frame + kUdpAt, kFrameBytes - kUdpAt));
    return header.is_valid() && datagram.is_valid();
}

// Writes complete frames of one side of the gateway.
class FrameWriter {
 public:
    FrameWriter(MacAddr from, MacAddr to) noexcept {
        store(blank_, packet::EthernetHeader{to, from, Be16::from_host(packet::kEtherTypeIpv4)});
        packet::Ipv4Header ip;
        ip.total_length = Be16::from_host(kFrameBytes - kIpAt);
        ip.ttl = 64;
        ip.protocol = 17;
        store(blank_ + kIpAt, ip);
        packet::UdpHeader udp;
        udp.length = Be16::from_host(kFrameBytes - kUdpAt);
        store(blank_ + kUdpAt, udp);
        ip_sum_.add(ByteView(blank_ + kIpAt, sizeof(ip)));
        // The pseudo header's protocol and length, the header's length again, and two complements of time,
        // which add zero.
        udp_sum_.add(Be16::from_host(17)).add(udp.length).add(udp.length);
    }

    void write(uint8_t* frame, const Tuple& tuple, uint32_t flow, uint16_t run,
               uint64_t ticks) const noexcept {
        std::memcpy(frame, blank_, kFrameBytes);
        auto ip = load<packet::Ipv4Header>(blank_ + kIpAt);
        ip.source = Be32::from_host(tuple.source);
        ip.destination = Be32::from_host(tuple.destination);
        ip.checksum = packet::ChecksumSum(ip_sum_).add(ip.source).add(ip.destination).checksum();
        store(frame + kIpAt, ip);
        auto udp = load<packet::UdpHeader>(blank_ + kUdpAt);
        udp.source_port = Be16::from_host(tuple.source_port);
        udp.destination_port = Be16::from_host(tuple.destination_port);
        const packet::ChecksumSum sum = packet::ChecksumSum(udp_sum_)
                                            .add(ip.source)
                                            .add(ip.destination)
                                            .add(udp.source_port)
                                            .add(udp.destination_port)
                                            .add(Be32::from_raw(flow))
                                            .add(Be16::from_raw(run));
        udp.checksum = packet::udp_checksum_field(sum.checksum());
        store(frame + kUdpAt, udp);
        put_time(frame, ticks);
        store(frame + kFlowAt, flow);
        store(frame + kRunAt, run);
    }

 private:
    uint8_t blank_[kFrameBytes] = {};
    packet::ChecksumSum ip_sum_, udp_sum_;
};

// An endpoint's answer: sends a frame back to its source, with a new time.
inline void turn_around(uint8_t* frame, uint64_t ticks) noexcept {
    auto ethernet = load<packet::EthernetHeader>(frame);
    std::swap(ethernet.source, ethernet.destination);
    store(frame, ethernet);
    auto ip = load<packet::Ipv4Header>(frame + kIpAt);
    std::swap(ip.source, ip.destination);
    store(frame + kIpAt, ip);
    auto udp = load<packet::UdpHeader>(frame + kUdpAt);
    std::swap(udp.source_port, udp.destination_port);
    store(frame + kUdpAt, udp);
    put_time(frame, ticks);
}

}  // namespace penstock::perf
