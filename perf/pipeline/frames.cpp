// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline/frames.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock::perf {
namespace {

constexpr uint32_t kEthernet = 14, kIpv4 = 20, kIpv6 = 40, kTcp = 20, kUdp = 8;
constexpr uint8_t kTtl = 64;
constexpr uint32_t kFrameMin = 60;

void put16(uint8_t* at, uint32_t value) noexcept {
    at[0] = static_cast<uint8_t>(value >> 8);
    at[1] = static_cast<uint8_t>(value);
}
uint16_t get16(const uint8_t* at) noexcept {
    return static_cast<uint16_t>(at[0] << 8 | at[1]);
}

// RFC 1071, word by word.
uint32_t sum_of(const uint8_t* bytes, uint32_t count, uint32_t sum = 0) noexcept {
    for (uint32_t i = 0; i < count; i += 2) {
        sum += get16(bytes + i);
    }
    return sum;
}
uint16_t folded(uint32_t sum) noexcept {
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<uint16_t>(sum);
}

bool is_v4(const uint8_t* frame) noexcept {
    return get16(frame + 12) == 0x0800;
}
uint32_t l4_offset(const uint8_t* frame) noexcept {
    return kEthernet + (is_v4(frame) ? kIpv4 : kIpv6);
}
uint8_t protocol_of(const uint8_t* frame) noexcept {
    return frame[kEthernet + (is_v4(frame) ? 9 : 6)];
}
uint32_t l4_bytes(uint8_t protocol) noexcept {
    return protocol == static_cast<uint8_t>(Protocol::Tcp) ? kTcp : kUdp;
}
uint8_t* l4_checksum(uint8_t* l4, uint8_t protocol) noexcept {
    return l4 + (protocol == static_cast<uint8_t>(Protocol::Tcp) ? 16 : 6);
}

// Over the pseudo header (addresses, protocol, length) and the segment.
uint32_t l4_sum(const uint8_t* frame) noexcept {
    const uint8_t protocol = protocol_of(frame);
    const uint32_t bytes = l4_bytes(protocol);
    const uint32_t addresses =
        is_v4(frame) ? sum_of(frame + kEthernet + 12, 8) : sum_of(frame + kEthernet + 8, 32);
    return sum_of(frame + l4_offset(frame), bytes, addresses + protocol + bytes);
}

}  // namespace

uint16_t make_frame(uint8_t* frame, const packet::FlowKey& key, uint8_t tcp_flags,
                    const MacAddr& port) noexcept {
    const bool v4 = key.source.is_v4();
    const auto protocol = static_cast<uint8_t>(key.protocol);
    const uint32_t segment = l4_bytes(protocol);
    static constexpr std::array<uint8_t, 6> kSender = {2, 0, 0, 0, 1, 2};
    std::memset(frame, 0, 80);
    std::memcpy(frame, port.bytes.data(), port.bytes.size());
    std::memcpy(frame + 6, kSender.data(), kSender.size());
    put16(frame + 12, v4 ? 0x0800 : 0x86dd);
    uint8_t* ip = frame + kEthernet;
    if (v4) {
        ip[0] = 0x45;
        put16(ip + 2, kIpv4 + segment);
        ip[8] = kTtl;
        ip[9] = protocol;
        std::memcpy(ip + 12, key.source.bytes().data() + 12, 4);
        std::memcpy(ip + 16, key.destination.bytes().data() + 12, 4);
        put16(ip + 10, static_cast<uint16_t>(~folded(sum_of(ip, kIpv4))));
    } else {
        ip[0] = 0x60;
        put16(ip + 4, segment);
        ip[6] = protocol;
        ip[7] = kTtl;
        std::memcpy(ip + 8, key.source.bytes().data(), 16);
        std::memcpy(ip + 24, key.destination.bytes().data(), 16);
    }
    uint8_t* l4 = frame + l4_offset(frame);
    put16(l4, key.source_port);
    put16(l4 + 2, key.destination_port);
    if (key.protocol == Protocol::Tcp) {
        // A SYN has the number before 0, which is the number that all segments acknowledge. Otherwise the
        // number is arbitrary.
        put16(l4 + 4, (tcp_flags & kSyn) != 0 ? 0xffff : key.source_port);
        put16(l4 + 6, (tcp_flags & kSyn) != 0 ? 0xffff : 0);
        l4[12] = 0x50;
        l4[13] = tcp_flags;
        put16(l4 + 14, 0x1000);
    } else {
        put16(l4 + 4, segment);
    }
    const auto checksum = static_cast<uint16_t>(~folded(l4_sum(frame)));
    // Zero means that there is no checksum (RFC 768).
    put16(l4_checksum(l4, protocol), checksum == 0 && key.protocol == Protocol::Udp ? 0xffff : checksum);
    return static_cast<uint16_t>(std::max(kFrameMin, l4_offset(frame) + segment));
}

packet::FlowKey tuple_in(const uint8_t* frame) noexcept {
    packet::FlowKey key;
    const uint8_t* ip = frame + kEthernet;
    if (is_v4(frame)) {
        key.source = IpAddr::v4(ip[12], ip[13], ip[14], ip[15]);
        key.destination = IpAddr::v4(ip[16], ip[17], ip[18], ip[19]);
    } else {
        std::array<uint8_t, 16> address;
        std::memcpy(address.data(), ip + 8, 16);
        key.source = IpAddr::v6(address);
        std::memcpy(address.data(), ip + 24, 16);
        key.destination = IpAddr::v6(address);
    }
    key.protocol = static_cast<Protocol>(protocol_of(frame));
    const uint8_t* l4 = frame + l4_offset(frame);
    key.source_port = get16(l4);
    key.destination_port = get16(l4 + 2);
    return key;
}

bool is_translated_to(const uint8_t* frame, const packet::FlowKey& key) noexcept {
    if (is_v4(frame) != key.source.is_v4() || tuple_in(frame) != key) {
        return false;
    }
    const uint8_t* ip = frame + kEthernet;
    if (ip[is_v4(frame) ? 8 : 7] != kTtl - 1 || (is_v4(frame) && folded(sum_of(ip, kIpv4)) != 0xffff)) {
        return false;
    }
    return folded(l4_sum(frame)) == 0xffff;
}

}  // namespace penstock::perf
