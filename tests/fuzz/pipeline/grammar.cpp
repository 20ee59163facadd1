// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pipeline/grammar.hpp"

#include <algorithm>
#include <optional>

#include "tests/fuzz/pipeline/world.hpp"

namespace penstock::fuzz {
namespace {

constexpr uint8_t kTcpFlags[] = {0x02, 0x10, 0x18, 0x11, 0x04, 0x14,
                                 0x12, 0x00, 0x03, 0x29, 0xc2, 0x3f};  // SYN, ACK, PSH-ACK, FIN-ACK, RST, ...
constexpr uint8_t kTtls[] = {64, 64, 64, 64, 2, 1, 0, 255};

// Usual room in frames and messages, in bytes.
constexpr size_t kIpHeadersUsual = 64, kTransportHeaderUsual = 32;

void put(Frame& to, ByteView bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}
void put_word(Frame& to, uint32_t value) {
    to.push_back(static_cast<uint8_t>(value >> 8));
    to.push_back(static_cast<uint8_t>(value));
}
void put_long(Frame& to, uint32_t value) {
    put_word(to, value >> 16);
    put_word(to, value & 0xffff);
}
void put_address(Frame& to, const IpAddr& address) {
    put(to, address.is_v4() ? std::span(address.bytes()).last(4) : std::span(address.bytes()));
}

// The layer between Ethernet and the transport.
struct IpLayer {
    IpAddr source, destination;
    uint8_t ttl = 64, tos = 0, protocol = 0;
    uint16_t id = 0, flags_and_offset = 0;              // IPv4
    Frame options;                                      // in whole words; IPv4
    std::vector<std::pair<uint8_t, Frame>> extensions;  // number, and all bytes behind the first; IPv6
};

Frame frame_of(const IpLayer& ip, ByteView l4, const MacAddr& from, const MacAddr& to) {
    Frame frame;
    frame.reserve(kEtherBytes + kIpHeadersUsual + l4.size());
    put(frame, to.bytes);
    put(frame, from.bytes);
    if (ip.source.is_v4()) {
        put_word(frame, 0x0800);
        const size_t header = 20 + ip.options.size();
        frame.push_back(static_cast<uint8_t>(0x40 | header / 4));
        frame.push_back(ip.tos);
        put_word(frame, static_cast<uint32_t>(header + l4.size()));
        put_word(frame, ip.id);
        put_word(frame, ip.flags_and_offset);
        frame.push_back(ip.ttl);
        frame.push_back(ip.protocol);
        put_word(frame, 0);
    } else {
        put_word(frame, 0x86dd);
        put_long(frame, 0x6000'0000U | uint32_t{ip.tos} << 20 | ip.id);
        size_t payload = l4.size();
        for (const auto& [number, behind] : ip.extensions) {
            payload += 1 + behind.size();
        }
        put_word(frame, static_cast<uint32_t>(payload));
        frame.push_back(ip.extensions.empty() ? ip.protocol : ip.extensions.front().first);
        frame.push_back(ip.ttl);
    }
    put_address(frame, ip.source);
    put_address(frame, ip.destination);
    put(frame, ip.options);
    for (size_t i = 0; i < ip.extensions.size(); ++i) {
        frame.push_back(i + 1 < ip.extensions.size() ? ip.extensions[i + 1].first : ip.protocol);
        put(frame, ip.extensions[i].second);
    }
    put(frame, l4);
    set_right_sums(frame);
    return frame;
}

void put_payload(Frame& to, Choices& choices) {
    static constexpr uint16_t kSizes[] = {0, 0, 1, 5, 8, 64, 536, 1300, 1460, 1472};
    const size_t size = choices.one_of(kSizes);
    to.resize(to.size() + size, choices.byte());
}

// Has room for a transport header without reallocation.
Frame new_message() {
    Frame l4;
    l4.reserve(kTransportHeaderUsual);
    return l4;
}

Frame tcp_segment(Choices& choices, L4Port source, L4Port destination) {
    Frame l4 = new_message();
    const uint8_t flags = choices.one_of(kTcpFlags);
    const bool offers_mss = (flags & 0x02) != 0 && choices.one_in(3);
    put_word(l4, source);
    put_word(l4, destination);
    put_long(l4, uint32_t{choices.byte()} << 24 | 7);
    put_long(l4, uint32_t{choices.byte()} << 24 | 9);
    l4.push_back(offers_mss ? 0x60 : 0x50);
    l4.push_back(flags);
    put_word(l4, choices.byte());  // window, may be zero
    put_long(l4, (flags & 0x20) != 0 ? 3 : 0);
    if (offers_mss) {
        put_long(l4, 0x0204'0000U | uint32_t{choices.byte()} << 4);
    }
    put_payload(l4, choices);
    return l4;
}

Frame udp_datagram(Choices& choices, L4Port source, L4Port destination) {
    Frame l4 = new_message();
    put_word(l4, source);
    put_word(l4, destination);
    put_long(l4, 0);
    put_payload(l4, choices);
    set_word(l4, 4, static_cast<uint16_t>(l4.size()));
    return l4;
}

Frame sctp_packet(Choices& choices, L4Port source, L4Port destination) {
    static constexpr uint8_t kChunks[] = {1, 2, 10, 11, 0, 3,  4,   5,
                                          6, 7, 8,  14, 9, 15, 192, 255};  // INIT, INIT ACK, COOKIE ECHO, ...
    static constexpr uint32_t kTags[] = {0, 0x11111111, 0x22222222, 0x33333333};
    Frame l4 = new_message();
    put_word(l4, source);
    put_word(l4, destination);
    put_long(l4, choices.one_of(kTags));
    put_long(l4, 0);
    for (uint32_t left = 1 + choices.below(3); left > 0; --left) {
        Frame chunk{choices.one_of(kChunks), choices.byte(), 0, 0};
        const bool has_tag = chunk[0] == 1 || chunk[0] == 2;
        const size_t bytes = has_tag ? 16 : choices.below(24);
        if (has_tag) {
            put_long(chunk, choices.one_of(kTags));
        }
        chunk.resize(4 + bytes, 1);
        set_word(chunk, 2, static_cast<uint16_t>(choices.one_in(16) ? choices.word() : chunk.size()));
        chunk.resize((chunk.size() + 3) / 4 * 4);
        put(l4, chunk);
    }
    return l4;
}

Frame icmp_message(Choices& choices, bool is_v4) {
    static constexpr uint8_t kTypes4[] = {8, 0, 13, 17, 5, 9, 3, 11};
    static constexpr uint8_t kTypes6[] = {128, 129, 135, 136, 134, 137, 1, 3};
    Frame l4 = new_message();
    l4.push_back(is_v4 ? choices.one_of(kTypes4) : choices.one_of(kTypes6));
    l4.push_back(static_cast<uint8_t>(choices.below(4)));
    put_word(l4, 0);
    put_long(l4, choices.word());
    put_payload(l4, choices);
    return l4;
}

void decorate(Choices& choices, IpLayer& ip) {
    ip.ttl = choices.one_of(kTtls);
    ip.tos = choices.byte();
    ip.id = choices.byte();
    if (!choices.one_in(4)) {
        return;
    }
    if (ip.source.is_v4()) {
        ip.flags_and_offset = choices.one_in(2) ? 0x4000 : 0;
        static const Frame kOptions[] = {{1, 1, 1, 0},
                                         {0x94, 4, 0, 0},
                                         {0x83, 7, 4, 10, 0, 0, 1, 0},
                                         {0x89, 7, 4, 10, 0, 0, 1, 0},
                                         {0x07, 0xff, 4, 0},
                                         {0x44, 8, 5, 0, 0, 0, 0, 0}};
        if (choices.one_in(2)) {
            ip.options = choices.one_of(kOptions);
        }
        return;
    }
    for (uint32_t left = choices.below(11); left > 0; --left) {
        static constexpr uint8_t kNumbers[] = {60, 0, 43, 44, 60, 51, 59};
        Frame behind{0, 1, 4, 0, 0, 0, 0};
        const uint8_t number = choices.one_of(kNumbers);
        if (number == 44) {
            behind = {0,
                      0,
                      static_cast<uint8_t>(choices.one_in(3) ? 1 : 0),
                      0,
                      0,
                      0,
                      choices.byte()};  // atomic, or a first fragment
        } else if (number == 43) {
            behind = {
                0, static_cast<uint8_t>(choices.below(5)), static_cast<uint8_t>(choices.below(2)), 0, 0, 0,
                0};
        }
        ip.extensions.emplace_back(number, std::move(behind));
    }
}

L4Port any_port(Choices& choices) {
    return choices.one_in(8) ? choices.word() : choices.one_of(known_ports());
}

const MacAddr& mac_of(NicPortId port) {
    return port == test::kUp ? test::kUpMac : test::kClusterMac;
}
MacAddr neighbour_mac(NicPortId port, uint8_t host) {
    return port == test::kUp ? test::kClientMac : test::backend_mac(host);
}

// An address of a client, of an endpoint or of the host itself.
IpAddr source_on(Choices& choices, NicPortId port, bool is_v4, bool from_host) {
    const IpFamily family = is_v4 ? IpFamily::V4 : IpFamily::V6;
    if (from_host) {
        return port == test::kUp ? (is_v4 ? test::kUpAddress : test::kUpAddress6)
                                 : (is_v4 ? test::kClusterAddress : test::kClusterAddress6);
    }
    if (port == test::kCluster) {
        return test::backend_address(static_cast<uint8_t>(kFirstEndpoint + choices.below(8)), family);
    }
    if (choices.one_in(16)) {
        return test::backend_address(kFirstEndpoint, family);  // spoofed
    }
    return is_v4 ? choices.one_of(kSources4) : choices.one_of(kSources6);
}

IpAddr any_destination(Choices& choices, bool is_v4) {
    switch (choices.below(8)) {
        case 5:
            return is_v4 ? test::kUpAddress : test::kUpAddress6;
        case 6:
            return is_v4 ? test::kClusterAddress : test::kClusterAddress6;
        case 7:
            return is_v4 ? choices.one_of(kSources4) : choices.one_of(kSources6);
        default:
            return is_v4 ? choices.one_of(kVips4) : choices.one_of(kVips6);
    }
}

Frame message(Choices& choices, IpLayer& ip, L4Port source, L4Port destination) {
    static constexpr uint8_t kProtocols[] = {kTcp, kUdp, kTcp, kUdp, kSctp, kIcmp, kTcp, 4};
    ip.protocol = choices.one_of(kProtocols);
    switch (ip.protocol) {
        case kTcp:
            return tcp_segment(choices, source, destination);
        case kUdp:
            return udp_datagram(choices, source, destination);
        case kSctp:
            return sctp_packet(choices, source, destination);
        case kIcmp:
            ip.protocol = ip.source.is_v4() ? kIcmp : kIcmpv6;
            return icmp_message(choices, ip.source.is_v4());
        default: {
            Frame l4;
            put_payload(l4, choices);
            return l4;
        }
    }
}

// The same protocol as `like`, with other flags, chunks and payload.
Frame message_like(Choices& choices, uint8_t protocol, L4Port source, L4Port destination, bool is_v4) {
    return protocol == kTcp    ? tcp_segment(choices, source, destination)
           : protocol == kUdp  ? udp_datagram(choices, source, destination)
           : protocol == kSctp ? sctp_packet(choices, source, destination)
                               : icmp_message(choices, is_v4);
}

void swap_macs(Frame& frame) {
    std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
}
MacAddr mac_at(const Frame& frame, size_t at) {
    MacAddr mac;
    std::copy_n(frame.begin() + static_cast<ptrdiff_t>(at), mac.bytes.size(), mac.bytes.begin());
    return mac;
}

}  // namespace

uint8_t Choices::byte() {
    if (left_.empty()) {
        return 0;
    }
    const uint8_t next = left_.front();
    left_ = left_.subspan(1);
    return next;
}

uint16_t Choices::word() {
    // Each in a statement of its own, so that a program means the same with every compiler.
    const uint8_t high = byte();
    return static_cast<uint16_t>(high << 8 | byte());
}

Frame Choices::bytes(size_t most) {
    const size_t count = std::min({size_t{byte()}, most, left_.size()});
    Frame taken(left_.begin(), left_.begin() + static_cast<ptrdiff_t>(count));
    left_ = left_.subspan(count);
    return taken;
}

Arrived fresh_packet(Choices& choices) {
    const uint8_t where = choices.byte();
    const NicPortId port = (where & 3) == 3 ? test::kCluster : test::kUp;
    const bool is_v4 = (where & 4) == 0, from_host = (where & 0x70) == 0x70;
    IpLayer ip;
    ip.source = source_on(choices, port, is_v4, from_host);
    ip.destination = any_destination(choices, is_v4);
    decorate(choices, ip);
    const L4Port source = any_port(choices), destination = any_port(choices);
    const Frame l4 = message(choices, ip, source, destination);
    const MacAddr neighbour = neighbour_mac(port, kFirstEndpoint);
    Frame frame =
        from_host ? frame_of(ip, l4, mac_of(port), neighbour) : frame_of(ip, l4, neighbour, mac_of(port));
    return {std::move(frame), port, from_host};
}

Arrived next_packet(Choices& choices, const Passed& before) {
    const Frame& old = before.arrived.frame;
    const Sight sight = look(old);
    if (!sight.is_ip || !sight.has_ports(old)) {
        return before.arrived;  // an exact repetition
    }
    IpLayer ip{.source = sight.source, .destination = sight.destination, .protocol = sight.protocol};
    decorate(choices, ip);
    const Frame l4 =
        message_like(choices, ip.protocol, word_at(old, sight.l4), word_at(old, sight.l4 + 2), sight.is_v4);
    return {frame_of(ip, l4, mac_at(old, 6), mac_at(old, 0)), before.arrived.port, before.arrived.from_host};
}

Arrived reply_to(Choices& choices, const Passed& before) {
    const Frame& seen = before.left;
    const Sight sight = look(seen);
    if (!sight.is_ip || !sight.has_ports(seen)) {
        Arrived echo{seen, before.egress, before.to_host};
        swap_macs(echo.frame);
        return echo;
    }
    IpLayer ip{.source = sight.destination, .destination = sight.source, .protocol = sight.protocol};
    decorate(choices, ip);
    const Frame l4 =
        message_like(choices, ip.protocol, word_at(seen, sight.l4 + 2), word_at(seen, sight.l4), sight.is_v4);
    return {frame_of(ip, l4, mac_at(seen, 0), mac_at(seen, 6)), before.egress, before.to_host};
}

Arrived error_about(Choices& choices, const Passed& before) {
    const Frame& seen = before.left;
    const Sight sight = look(seen);
    if (!sight.is_ip) {
        return {seen, before.egress, before.to_host};
    }
    static constexpr uint8_t kTypes4[] = {3, 11, 12, 3, 4, 5}, kTypes6[] = {1, 2, 3, 4, 2, 100};
    const IpFamily family = sight.is_v4 ? IpFamily::V4 : IpFamily::V6;
    const IpAddr reporters[] = {sight.destination, test::backend_address(kClusterRouter, family),
                                sight.is_v4 ? kSources4[1] : kSources6[1], sight.destination};
    IpLayer ip{.source = choices.one_of(reporters),
               .destination = sight.source,
               .protocol = sight.is_v4 ? kIcmp : kIcmpv6};
    decorate(choices, ip);
    Frame l4{sight.is_v4 ? choices.one_of(kTypes4) : choices.one_of(kTypes6),
             static_cast<uint8_t>(choices.below(6)), 0, 0};
    put_long(l4, choices.word());
    static constexpr size_t kQuoted[] = {1480, 28, 48, 27, 36, 60, 100, 20, 7, 548};
    const size_t room = sight.is_v4 ? 1472 : 1232;
    Frame quoted(seen.begin() + static_cast<ptrdiff_t>(sight.l3),
                 seen.begin() + static_cast<ptrdiff_t>(
                                    sight.l3 + std::min({choices.one_of(kQuoted), sight.l3_bytes, room})));
    if (choices.one_in(4) && !quoted.empty()) {
        quoted[choices.byte() % quoted.size()] ^= choices.byte();
    }
    put(l4, quoted);
    return {frame_of(ip, l4, mac_at(seen, 0), mac_at(seen, 6)), before.egress, before.to_host};
}

std::vector<Arrived> fragments_of(Choices& choices, const Arrived& whole) {
    const Sight sight = look(whole.frame);
    if (!sight.is_ip || sight.is_fragment || sight.l4_bytes() < 16) {
        return {whole};
    }
    // In IPv6, fragments keep the headers in front of the fragment header; the packets here have none.
    const ByteView l4 = ByteView(whole.frame).subspan(sight.l4, sight.l4_bytes());
    const uint8_t id = choices.byte();
    std::vector<Arrived> fragments;
    size_t at = 0;
    while (at < l4.size() && fragments.size() < 6) {
        const size_t bytes = std::min(l4.size() - at, (1 + size_t{choices.byte()}) * 8);
        size_t offset = at;
        if (choices.one_in(16)) {
            offset = offset / 8 >= 2 ? offset - 8 : size_t{choices.word()} * 8;  // overlapping, or anywhere
        }
        const bool more = at + bytes < l4.size() || choices.one_in(16);
        IpLayer ip{.source = sight.source,
                   .destination = sight.destination,
                   .ttl = sight.ttl,
                   .protocol = sight.protocol,
                   .id = id};
        const auto units = static_cast<uint16_t>(offset / 8 & 0x1fff);
        if (sight.is_v4) {
            ip.flags_and_offset = static_cast<uint16_t>(units | (more ? 0x2000 : 0));
        } else {
            const auto field = static_cast<uint16_t>(units << 3 | (more ? 1 : 0));
            ip.extensions.emplace_back(uint8_t{44}, Frame{0, static_cast<uint8_t>(field >> 8),
                                                          static_cast<uint8_t>(field), 0, 0, 0, id});
        }
        fragments.push_back(
            {frame_of(ip, l4.subspan(at, bytes), mac_at(whole.frame, 6), mac_at(whole.frame, 0)), whole.port,
             whole.from_host});
        at += bytes;
    }
    switch (choices.below(8)) {
        case 0:
            break;
        case 1:
            std::ranges::reverse(fragments);
            break;
        case 2:
            std::ranges::rotate(fragments, fragments.begin() + 1);
            break;
        case 3:
            fragments.push_back(fragments[choices.byte() % fragments.size()]);
            break;
        case 4:
            fragments.erase(fragments.begin() + choices.byte() % static_cast<ptrdiff_t>(fragments.size()));
            break;
        case 7:
            if (!sight.is_v4) {  // only the first fragment's protocol is used (RFC 8200, 4.5)
                Frame& last = fragments.back().frame;
                last[look(last).l3 + sizeof(packet::Ipv6Header)] ^= choices.byte();
            }
            break;
        default:
            for (size_t left = fragments.size(); left > 1; --left) {
                std::swap(fragments[left - 1], fragments[choices.byte() % left]);
            }
            break;
    }
    return fragments;
}

Arrived raw_frame(Choices& choices) {
    const NicPortId port = choices.one_in(2) ? test::kCluster : test::kUp;
    Frame frame;
    put(frame, mac_of(port).bytes);
    put(frame, neighbour_mac(port, kFirstEndpoint).bytes);
    static constexpr uint16_t kTypes[] = {0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8};
    put_word(frame, choices.one_of(kTypes));
    put(frame, choices.bytes(255));
    if (choices.one_in(2)) {
        set_right_sums(frame);
    }
    return {std::move(frame), port, false};
}

void spoil(Choices& choices, Arrived& arrived) {
    Frame& frame = arrived.frame;
    if (frame.size() < kEtherBytes) {
        return;
    }
    switch (choices.below(32)) {
        case 1:
            frame[choices.word() % frame.size()] ^= choices.byte();
            break;
        case 2:
            frame[choices.word() % frame.size()] ^= choices.byte();
            set_right_sums(frame);
            break;
        case 3:
            frame.resize(choices.word() % frame.size());
            break;
        case 4:
            frame.resize(std::max<size_t>(frame.size(), choices.byte()),
                         0xee);  // Ethernet padding, which need not be zero
            break;
        case 5: {
            static constexpr uint16_t kTags[] = {0, 0x2000, 5, 0x0fff};
            const Frame tag{static_cast<uint8_t>(choices.one_in(2) ? 0x88 : 0x81), 0, 0, 0};
            frame.insert(frame.begin() + 12, tag.begin(), tag.end());
            frame[13] = frame[12] == 0x88 ? 0xa8 : 0x00;
            set_word(frame, 14, choices.one_of(kTags));
            break;
        }
        case 6:
            frame[0] = choices.byte();
            break;
        case 7:
            std::ranges::fill(std::span(frame).first(6), uint8_t{0xff});
            break;
        case 8:
            std::copy_n(mac_of(arrived.port).bytes.begin(), 6, frame.begin() + 6);
            break;
        default:
            break;
    }
}

}  // namespace penstock::fuzz
