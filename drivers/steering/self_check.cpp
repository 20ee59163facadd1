// SPDX-License-Identifier: Apache-2.0
#include "drivers/steering/self_check.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_random.h>
#include <rte_thash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "dataplane/base/bytes.hpp"
#include "dataplane/nat/toeplitz.hpp"
#include "dataplane/packet/answers/answer.hpp"
#include "dataplane/packet/answers/reset.hpp"
#include "dataplane/packet/parse.hpp"

namespace penstock::drivers {
namespace {

// Packets of each type. With two queues, a device that chooses the queue by another rule hits the predicted
// one 16 times by chance in one of 65,536 starts.
constexpr unsigned kPacketsOfAKind = 16;

// Ethernet's minimum frame without its check sequence; a device may refuse to send less.
constexpr uint16_t kFrameBytesMin = 60;

IpAddr v4_address(uint8_t network, unsigned number) {
    return network == 0 ? IpAddr::v4(192, 0, 2, static_cast<uint8_t>(1 + number))
                        : IpAddr::v4(198, 51, 100, static_cast<uint8_t>(1 + number));
}

// 2001:db8:NETWORK::x. The number changes every byte of the interface part.
IpAddr v6_address(uint8_t network, unsigned number) {
    std::array<uint8_t, 16> bytes{0x20, 0x01, 0x0d, 0xb8, 0, network};
    for (size_t i = 8; i < bytes.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(1 + number * (2 * i + 1));
    }
    return IpAddr::v6(bytes);
}

packet::FlowKey known_key(IpFamily family, Protocol protocol, unsigned number) {
    packet::FlowKey key;
    key.source = family == IpFamily::V4 ? v4_address(0, number) : v6_address(1, number);
    key.destination = family == IpFamily::V4 ? v4_address(1, 3 * number) : v6_address(2, 3 * number);
    // Odd steps change both bytes of a port and all of their bits.
    key.source_port = static_cast<L4Port>(80 + 4099 * number);
    key.destination_port = static_cast<L4Port>(1024 + 3929 * number);
    key.protocol = protocol;
    return key;
}

// Input for rte_softrss: words of the tuple in wire order, each in host byte order.
uint32_t hash_by_dpdk(const std::vector<uint8_t>& key, const packet::FlowKey& tuple) {
    std::array<uint32_t, 9> words{};
    uint32_t count = 0;
    const size_t first = tuple.source.is_v4() ? 12 : 0;
    for (const IpAddr* address : {&tuple.source, &tuple.destination}) {
        for (size_t at = first; at < 16; at += 4) {
            words[count++] = load<Be32>(address->bytes().data() + at).host();
        }
    }
    words[count++] = uint32_t{tuple.source_port} << 16 | tuple.destination_port;
    return rte_softrss(words.data(), count, key.data());
}

uint16_t build_datagram(std::span<uint8_t> frame, const packet::FlowKey& key) {
    const IpFamily family = key.source.family();
    packet::EthernetHeader ethernet{};
    ethernet.type = Be16::from_host(family == IpFamily::V4 ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6);
    store(frame.data(), ethernet);
    uint8_t* const ip_at = frame.data() + sizeof ethernet;
    constexpr auto kUdp = static_cast<uint8_t>(Protocol::Udp);
    packet::UdpHeader udp;
    packet::store_answer_header(ip_at, key.source, key.destination, kUdp, 0, sizeof udp);
    udp.source_port = Be16::from_host(key.source_port);
    udp.destination_port = Be16::from_host(key.destination_port);
    udp.length = Be16::from_host(sizeof udp);
    uint8_t* const udp_at = ip_at + packet::answer_header_bytes(family);
    store(udp_at, udp);
    udp.checksum =
        packet::udp_checksum_field(packet::ChecksumSum()
                                       .add_pseudo_header(key.source, key.destination, kUdp, sizeof udp)
                                       .add(ByteView(udp_at, sizeof udp))
                                       .checksum());
    store(udp_at, udp);
    return static_cast<uint16_t>(udp_at + sizeof udp - frame.data());
}

// A random MAC address as the source, another one at each check. Some devices drop looped frames that have
// their own address as the source, and no host on the wire can guess a source that the check accepts.
MacAddr made_up_neighbour() {
    const uint64_t random = rte_rand();
    MacAddr neighbour{{0x02}};
    std::memcpy(neighbour.bytes.data() + 1, &random, neighbour.bytes.size() - 1);
    return neighbour;
}

rte_mbuf* known_frame(const packet::FlowKey& key, const MacAddr& source, const MacAddr& own,
                      rte_mempool* pool) {
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
    if (mbuf == nullptr) {
        return nullptr;
    }
    std::array<uint8_t, 128> frame{};
    const uint16_t built = key.protocol == Protocol::Udp
                               ? build_datagram(frame, key)
                               : packet::build_segment(frame, key, {.seq = 1, .ack = 1},
                                                       packet::TcpFlags{packet::TcpFlags::kAck});
    auto ethernet = load<packet::EthernetHeader>(frame.data());
    ethernet.destination = own;
    ethernet.source = source;
    store(frame.data(), ethernet);
    const uint16_t bytes = std::max(built, kFrameBytesMin);
    // A pool's buffers are much larger than that (mempool.cpp).
    std::memcpy(rte_pktmbuf_append(mbuf, bytes), frame.data(), bytes);
    return mbuf;
}

}  // namespace

std::vector<KnownPacket> known_packets(const RssReading& reading) {
    const struct {
        bool covered;
        IpFamily family;
        Protocol protocol;
    } kinds[] = {{reading.kinds.tcp4, IpFamily::V4, Protocol::Tcp},
                 {reading.kinds.udp4, IpFamily::V4, Protocol::Udp},
                 {reading.kinds.tcp6, IpFamily::V6, Protocol::Tcp},
                 {reading.kinds.udp6, IpFamily::V6, Protocol::Udp}};
    std::vector<KnownPacket> packets;
    for (const auto& kind : kinds) {
        for (unsigned number = 0; kind.covered && number < kPacketsOfAKind; ++number) {
            const packet::FlowKey key = known_key(kind.family, kind.protocol, number);
            packets.push_back({key, reading.table[hash_by_dpdk(reading.key, key) % reading.table.size()]});
        }
    }
    return packets;
}

std::string disagreement_by_computing(const RssReading& reading, std::span<const KnownPacket> packets) {
    const nat::Toeplitz toeplitz(reading.key);
    for (const KnownPacket& known : packets) {
        const uint16_t queue = reading.table[toeplitz.of(known.key) % reading.table.size()];
        if (queue != known.queue) {
            return "the self-check predicts queue " + std::to_string(queue) + " for " +
                   known.key.to_string() + ", but DPDK's own hash predicts queue " +
                   std::to_string(known.queue);
        }
    }
    return {};
}

std::string LoopbackAnswer::disagreement() const {
    if (misplaced == 0) {
        return {};
    }
    return "the port's RSS differs from its report: of " + std::to_string(returned) + " known packets, " +
           std::to_string(misplaced) + " reached another queue; " + first_misplaced;
}

LoopbackAnswer check_by_loopback(uint16_t dpdk_port, uint16_t rx_queues, const MacAddr& own,
                                 rte_mempool* pool, std::span<const KnownPacket> packets,
                                 unsigned patience_ms) {
    LoopbackAnswer answer;
    const MacAddr source = made_up_neighbour();
    std::vector<bool> is_back(packets.size());
    const auto take_back = [&](uint16_t queue, const rte_mbuf* mbuf) {
        packet::Parsed parsed;
        const ByteView frame(rte_pktmbuf_mtod(mbuf, const uint8_t*), rte_pktmbuf_data_len(mbuf));
        if (!packet::parse(frame, parsed) || parsed.kind != packet::PacketKind::Flow ||
            load<packet::EthernetHeader>(frame.data()).source != source) {
            return;  // from the wire, or the port's own
        }
        const auto known = std::ranges::find(packets, parsed.key, &KnownPacket::key);
        if (known == packets.end() || is_back[static_cast<size_t>(known - packets.begin())]) {
            return;
        }
        is_back[static_cast<size_t>(known - packets.begin())] = true;
        ++answer.returned;
        if (queue != known->queue) {
            if (answer.misplaced++ == 0) {
                answer.first_misplaced = known->key.to_string() + " reached queue " + std::to_string(queue) +
                                         " instead of " + std::to_string(known->queue);
            }
        }
    };
    const auto poll = [&] {
        std::array<rte_mbuf*, 32> burst{};
        for (uint16_t queue = 0; queue < rx_queues; ++queue) {
            const uint16_t count = rte_eth_rx_burst(dpdk_port, queue, burst.data(), burst.size());
            for (uint16_t i = 0; i < count; ++i) {
                take_back(queue, burst[i]);
                rte_pktmbuf_free(burst[i]);
            }
        }
    };
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(patience_ms);
    // A link that is not up yet refuses frames or loses them. Missing packets are sent again a few times.
    auto send_again = Clock::now();
    do {
        if (Clock::now() >= send_again) {
            for (size_t i = 0; i < packets.size(); ++i) {
                rte_mbuf* mbuf = is_back[i] ? nullptr : known_frame(packets[i].key, source, own, pool);
                if (mbuf != nullptr && rte_eth_tx_burst(dpdk_port, 0, &mbuf, 1) == 0) {
                    rte_pktmbuf_free(mbuf);
                } else if (mbuf != nullptr) {
                    ++answer.sent;
                }
            }
            send_again = Clock::now() + std::chrono::milliseconds(patience_ms / 4 + 1);
        }
        poll();
    } while (answer.returned < packets.size() && Clock::now() < deadline);
    poll();
    return answer;
}

}  // namespace penstock::drivers
