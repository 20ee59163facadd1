// SPDX-License-Identifier: Apache-2.0
// Odd and hostile headers below the transport: the dropped ones and their reasons, the forwarded ones and
// their output. None of them may bypass a rule for ordinary packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/wire.hpp"

#include "tests/protocols/ends.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/vlan_tags.hpp"

namespace penstock::test {
namespace headers_test {

using namespace vlan;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t kManyWorkers = 4;
constexpr L4Port kEmptyPort = 81, kDnsPort = 53;

Bytes changed(Bytes frame, size_t at, uint8_t value) {
    frame.at(at) = value;
    return frame;
}
// With a correct checksum over the IPv4 header of the stated length.
Bytes with_ip_sum(Bytes frame) {
    const size_t header = std::min<size_t>((frame[14] & 0x0f) * 4, frame.size() - 14);
    frame[24] = frame[25] = 0;
    const uint16_t sum = reference_checksum(ByteView(frame).subspan(14, header));
    frame[24] = static_cast<uint8_t>(sum >> 8);
    frame[25] = static_cast<uint8_t>(sum);
    return frame;
}
Bytes cut(Bytes frame, size_t length) {
    frame.resize(length);
    return frame;
}

route::PrefixSet list(std::initializer_list<const char*> texts) {
    std::vector<Prefix> prefixes;
    for (const char* text : texts) {
        prefixes.push_back(*Prefix::parse(text));
    }
    return route::PrefixSet(std::move(prefixes));
}

packet::FlowKey key_of(const Outcome& outcome) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(outcome.frame, parsed).has_value()) << to_scapy(outcome.frame);
    return parsed.key;
}

// Workers and family; each frame arrives on every queue.
class Headers : public testing::TestWithParam<std::tuple<uint32_t, IpFamily>> {
 protected:
    uint32_t workers = std::get<0>(GetParam());
    IpFamily family = std::get<1>(GetParam());
    bool is_v4 = family == IpFamily::V4;
    Ends ends = is_v4 ? ends4() : ends6();
    TestService web = service_on_both(Protocol::Tcp, 80, 9376);
    TestService dns = service_on_both(Protocol::Udp, kDnsPort, 5353);
    VirtualGateway gateway{VirtualGateway::Options{.workers = workers}};

    void SetUp() override {
        TestService empty = service_on_both(Protocol::Tcp, kEmptyPort, 9376);
        empty.backends = {};
        gateway.publish({web, dns, empty});
    }
    [[nodiscard]] PacketBuilder from(const std::string& source) const {
        return is_v4 ? ends.from_uplink().ipv4(source, ends.vip.to_string())
                     : ends.from_uplink().ipv6(source, ends.vip.to_string());
    }
    [[nodiscard]] PacketBuilder syn() const { return ends.from_client().tcp(40'000, 80, "S"); }
    // Opens a flow. Returns the port that the endpoint sees.
    uint16_t open() {
        const Outcome first = gateway.send(syn().build());
        EXPECT_EQ(first.verdict, Verdict::Transmit);
        return key_of(first).source_port;
    }
    void dropped(const std::string& name, const Bytes& frame, DropReason reason, NicPortId port = kUp) {
        for (uint8_t queue = 0; queue < workers; ++queue) {
            const Outcome outcome = gateway.send(frame, port, {queue});
            EXPECT_EQ(outcome.verdict, Verdict::Drop) << name << ": " << to_string(outcome.verdict);
            EXPECT_EQ(text_of(outcome.reason).counter, text_of(reason).counter) << name;
        }
    }
    void punted(const std::string& name, const Bytes& frame, const Bytes& expected, NicPortId port = kUp) {
        for (uint8_t queue = 0; queue < workers; ++queue) {
            const Outcome outcome = gateway.send(frame, port, {queue});
            EXPECT_EQ(outcome.verdict, Verdict::Punt) << name << ": " << text_of(outcome.reason).counter;
            EXPECT_TRUE(same_frame(outcome.frame, expected)) << name;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(All, Headers,
                         testing::Combine(testing::Values(1, 2, kManyWorkers),
                                          testing::Values(IpFamily::V4, IpFamily::V6)));

struct Refused {
    const char* name;
    DropReason reason;
    Bytes frame;
};

// At least one frame for each reason of the group "the frame itself", except the subjects with tests of their
// own: fragments, TTL, and packets in several buffers.
TEST_P(Headers, WhatContradictsItselfIsDroppedByName) {
    using enum DropReason;
    gateway.set_blocked_sources(list({"198.51.100.0/24", "2001:db8:bad::/48"}));
    constexpr size_t kIp = 14;
    const size_t l4 = kIp + (is_v4 ? 20 : 40);
    const Bytes plain = syn().build(),
                query = ends.from_client().udp(5'000, kDnsPort).payload("query").build();
    const auto tcp_from = [&](const char* source) { return from(source).tcp(40'000, 80, "S").build(); };
    std::vector<Refused> cases{
        {"less than an Ethernet header", FrameTooShort, cut(plain, 13)},
        {"an Ethernet header alone", FrameTooShort, cut(plain, 14)},
        {"cut in the IP header", FrameTooShort, cut(plain, l4 - 1)},
        {"cut in a priority tag", FrameTooShort, cut(tagged(plain, {kPriority}), 17)},
        {"cut behind a priority tag", FrameTooShort, cut(tagged(plain, {kPriority}), 30)},
        {"cut in the TCP header", FrameShorterThanIp, cut(plain, l4 + 19)},
        {"cut in the payload", FrameShorterThanIp, cut(query, query.size() - 1)},
        {"our own frame", OwnSourceMac, syn().from_mac(kUpMac.to_string()).build()},
        {"our own frame with a priority", OwnSourceMac,
         tagged(syn().from_mac(kUpMac.to_string()).build(), {kPriority})},
        {"another host's", WrongDestinationMac, syn().to_mac("02:00:00:00:99:99").build()},
        {"another host's with a priority", WrongDestinationMac,
         tagged(syn().to_mac("02:00:00:00:99:99").build(), {kPriority})},
        {"a version that the type does not announce", BadIpHeader, changed(plain, kIp, is_v4 ? 0x65 : 0x45)},
        {"TCP header of 16 bytes", BadL4Header, changed(plain, l4 + 12, 0x40)},
        {"TCP header longer than the packet", BadL4Header, changed(plain, l4 + 12, 0x60)},
        {"TCP from port 0", BadL4Header, ends.from_client().tcp(0, 80, "S").build()},
        {"TCP to port 0", BadL4Header, ends.from_client().tcp(40'000, 0, "S").build()},
        {"UDP from port 0", BadL4Header, ends.from_client().udp(0, kDnsPort).build()},
        {"UDP length of 7", BadL4Header, ends.from_client().udp(5'000, kDnsPort).udp_length(7).build()},
        {"UDP longer than the packet", BadL4Header,
         ends.from_client().udp(5'000, kDnsPort).udp_length(9).build()},
        {"a SYN that would be refused, with a wrong sum", BadL4Checksum,
         ends.from_client().tcp(40'000, kEmptyPort, "S").l4_checksum(0x1234).build()},
        {"from itself", MartianSource, tcp_from(ends.vip.to_string().c_str())},
        {"three priorities", TooManyTags, tagged(plain, {kPriority, kPriority, kPriority})},
        {"three VLANs, where a blocklist is to be asked", TooManyTags,
         tagged(plain, {kProvider7, kVlan5, kVlan5})},
    };
    const auto add = [&](std::vector<Refused> more) { cases.insert(cases.end(), more.begin(), more.end()); };
    if (is_v4) {
        const Bytes udp_header_cut = ends.from_client().ip_protocol(17).payload("1234567").build();
        add({{"a header of 16 bytes", BadIpHeader, changed(plain, kIp, 0x44)},
             {"a header longer than the packet", BadIpHeader,
              with_ip_sum(changed(changed(plain, kIp, 0x4f), kIp + 3, 40))},
             {"a header longer than the frame", FrameTooShort,
              with_ip_sum(changed(changed(plain, kIp, 0x4f), kIp + 3, 60))},
             {"a length of nothing", BadIpHeader, syn().ip_total_length(0).build()},
             {"a length of less than the header", BadIpHeader, syn().ip_total_length(19).build()},
             {"a wrong header sum", BadIpChecksum, syn().ip_checksum(0x1234).build()},
             {"a wrong header sum under options", BadIpChecksum,
              syn().options({148, 4, 0, 0}).ip_checksum(0x1234).build()},
             {"half a UDP header", BadL4Header, udp_header_cut},
             {"loopback", MartianSource, tcp_from("127.0.0.1")},
             {"a group", MartianSource, tcp_from("224.0.0.1")},
             {"class E", MartianSource, tcp_from("240.0.0.1")},
             {"the limited broadcast", MartianSource, tcp_from("255.255.255.255")},
             {"nobody", MartianSource, tcp_from("0.0.0.0")},
             {"this network", MartianSource, tcp_from("0.1.2.3")},
             {"the gateway", MartianSource, tcp_from("10.80.1.1")},
             {"the gateway, to a port that would be refused", MartianSource,
              from("10.80.2.1").tcp(40'000, kEmptyPort, "S").build()},
             {"the broadcast address of a link", MartianSource, tcp_from("10.80.1.255")},
             {"the broadcast address of the other link, to a closed port", MartianSource,
              from("10.80.2.255").tcp(40'000, 8'080, "S").build()},
             {"blocked", SourceBlocked, tcp_from("198.51.100.9")},
             {"blocked behind a priority", SourceBlocked, tagged(tcp_from("198.51.100.9"), {kPriority})},
             {"blocked in a VLAN", SourceBlocked, tagged(tcp_from("198.51.100.9"), {kVlan5})},
             {"blocked in QinQ", SourceBlocked, tagged(tcp_from("198.51.100.9"), {kProvider7, kVlan5})},
             {"blocked in QinQ behind priorities", SourceBlocked,
              tagged(tcp_from("198.51.100.9"), {kProviderPriority, kPriority, kProvider7, kVlan5})},
             {"a loose source route", IpOptions, syn().options({131, 7, 4, 192, 0, 2, 1}).build()},
             {"a strict source route", IpOptions, syn().options({137, 7, 4, 192, 0, 2, 1}).build()},
             {"a source route of a ping", IpOptions,
              ends.from_client().options({137, 3, 4}).icmp(8, 0).build()},
             {"an option of no length", BadIpHeader, syn().options({7, 0, 0, 0}).build()},
             {"an option beyond the header", BadIpHeader, syn().options({7, 5, 4, 0}).build()}});
    } else {
        PacketBuilder nine = ends.from_client();
        for (int header = 0; header < 9; ++header) {
            nine.destination_options();
        }
        add({{"loopback", MartianSource, tcp_from("::1")},
             {"a group", MartianSource, tcp_from("ff02::1")},
             {"nobody", MartianSource, tcp_from("::")},
             {"the gateway", MartianSource, tcp_from("fd00:80:1::1")},
             {"blocked", SourceBlocked, tcp_from("2001:db8:bad::1")},
             {"blocked behind a priority", SourceBlocked,
              tagged(tcp_from("2001:db8:bad::1"), {kProviderPriority})},
             {"blocked in a VLAN", SourceBlocked, tagged(tcp_from("2001:db8:bad::1"), {kVlan5})},
             {"blocked in QinQ", SourceBlocked, tagged(tcp_from("2001:db8:bad::1"), {kProvider7, kVlan5})},
             {"a mapped source", MappedAddress, tcp_from("::ffff:10.80.1.2")},
             {"nine extension headers", BadExtensionHeader, nine.tcp(40'000, 80, "S").build()},
             {"an extension header that is cut off", BadExtensionHeader,
              ends.from_client().hop_by_hop().payload_length(4).tcp(1, 80).build()},
             {"hop-by-hop options behind others", BadExtensionHeader,
              ends.from_client().destination_options().hop_by_hop().tcp(40'000, 80, "S").build()},
             {"an extension header beyond the packet", BadExtensionHeader,
              changed(ends.from_client().destination_options().tcp(40'000, 80, "S").build(), kIp + 40 + 1,
                      9)},
             {"a routing header of type 0", SourceRouted,
              ends.from_client().routing(0, 1).tcp(40'000, 80, "S").build()},
             {"a datagram without a sum", NoUdpChecksum,
              ends.from_client().udp(5'000, kDnsPort).l4_checksum(0).build()}});
    }
    std::set<DropReason> seen;
    for (const Refused& c : cases) {
        dropped(c.name, c.frame, c.reason);
        seen.insert(c.reason);
    }
    EXPECT_EQ(gateway.connections(), 0u) << "nothing of it opens a flow";

    const std::set<DropReason> elsewhere{Fragment,        BadFragment,   FragmentTooSmall, FragmentOverlap,
                                         FragmentExpired, FragmentsFull, TtlExpired,       FrameTooLong};
    const std::set<DropReason> of_v4{BadIpChecksum, IpOptions},
        of_v6{MappedAddress, BadExtensionHeader, SourceRouted, NoUdpChecksum};
    for (auto at = static_cast<size_t>(FrameTooShort); at <= static_cast<size_t>(TooManyTags); ++at) {
        const auto reason = static_cast<DropReason>(at);
        const bool concerns_family = !(is_v4 ? of_v6 : of_v4).contains(reason);
        EXPECT_TRUE(seen.contains(reason) || elsewhere.contains(reason) || !concerns_family)
            << text_of(reason).counter;
    }
}

// IEEE 802.1Q: a tag whose VLAN id is 0 has a priority and no VLAN.
TEST_P(Headers, AFrameWithAPriorityIsAnUntaggedOne) {
    const std::vector<std::vector<Tag>> ways{
        {kPriority}, {kProviderPriority}, {kProviderPriority, kPriority}, {{0x8100, 0x0000}}};
    const uint16_t port = open();
    for (const auto& tags : ways) {
        for (uint8_t queue = 0; queue < workers; ++queue) {
            const Outcome forward = gateway.send(
                tagged(ends.from_client().tcp(40'000, 80, "S").payload("data").build(), tags), kUp, {queue});
            ASSERT_EQ(forward.verdict, Verdict::Transmit) << to_string(forward.verdict);
            EXPECT_TRUE(
                same_frame(forward.frame, ends.to_backend(11).tcp(port, 9376, "S").payload("data").build()));
            const Outcome reverse = gateway.send(
                tagged(ends.from_backend(11).tcp(9376, port, "SA").build(), tags), kCluster, {queue});
            ASSERT_EQ(reverse.verdict, Verdict::Transmit) << to_string(reverse.verdict);
            EXPECT_TRUE(same_frame(reverse.frame, ends.to_client().tcp(80, 40'000, "SA").build()));
        }
        // The same rules as for an untagged frame apply.
        dropped("a port that no Service declares",
                tagged(ends.from_client().tcp(40'000, 8'080, "S").build(), tags), DropReason::VipPortClosed);
        const Bytes arp = eth()
                              .from_mac(kClientMac.to_string())
                              .to_mac("ff:ff:ff:ff:ff:ff")
                              .ether_type(0x0806)
                              .payload(Bytes(46))
                              .build();
        punted("ARP", tagged(arp, tags), arp);
        const IpAddr& own = is_v4 ? kUpAddress : kUpAddress6;
        const Bytes ssh = ends.ip(ends.from_uplink(), ends.client, own, 64).tcp(40'000, 22, "S").build();
        punted("the host", tagged(ssh, tags), ssh);
        std::vector<Tag> vlan_behind = tags;
        vlan_behind.push_back(kVlan5);
        if (vlan_behind.size() == 2) {
            punted("a VLAN behind it", tagged(ssh, vlan_behind), tagged(ssh, {kVlan5}));
        }
    }
    EXPECT_EQ(gateway.connections(), 1u);
}

// Such frames are for VLAN interfaces that Linux has on the twin, byte for byte.
TEST_P(Headers, FramesOfAVlanAreLinuxs) {
    const Bytes plain = syn().build();
    for (const auto& tags :
         {std::vector{kVlan5}, std::vector{kProvider7, kVlan5}, std::vector{kVlan5, kPriority}}) {
        punted("without a blocklist", tagged(plain, tags), tagged(plain, tags));
    }
    const std::vector three{kProvider7, kVlan5, kVlan5};
    punted("three, where nobody looks behind them", tagged(plain, three), tagged(plain, three));
    gateway.set_blocked_sources(list({"198.51.100.0/24", "2001:db8:bad::/48"}));
    for (const auto& tags : {std::vector{kVlan5}, std::vector{kProvider7, kVlan5}}) {
        punted("with one", tagged(plain, tags), tagged(plain, tags));
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(Headers, WhatLinuxTagsLeavesAsLinuxMadeIt_ETP006) {
    const Bytes plain = ends.ip(ends.to_uplink(), is_v4 ? kUpAddress : kUpAddress6, ends.client, 64)
                            .tcp(22, 40'000, "SA")
                            .build();
    for (const auto& tags : {std::vector{kPriority}, std::vector{kVlan5}, std::vector{kProvider7, kVlan5},
                             std::vector<Tag>(3, kPriority)}) {
        for (uint8_t queue = 0; queue < workers; ++queue) {
            const Outcome outcome = gateway.send_from_host(tagged(plain, tags), kUp, {queue});
            EXPECT_EQ(outcome.verdict, Verdict::Transmit);
            EXPECT_TRUE(same_frame(outcome.frame, tagged(plain, tags)));
        }
    }
}

TEST_P(Headers, IPv4OptionsPassOrAreDroppedAsTheOperatorSays) {
    if (!is_v4) {
        return;  // IPv6 has extension headers, which have a test of their own
    }
    const Bytes record_route{7, 7, 4, 0, 0, 0, 0}, router_alert{148, 4, 0, 0};
    const uint16_t port = open();
    const IpAddr& own = kUpAddress;
    const auto to_host = ends.ip(ends.from_uplink(), ends.client, own, 64);
    const Bytes ping = PacketBuilder(to_host).options(record_route).icmp(8, 0).build();
    const Bytes report = ends.from_uplink()
                             .to_mac("01:00:5e:00:00:16")
                             .ipv4("10.80.1.2", "224.0.0.22")
                             .options(router_alert)
                             .ip_protocol(2)
                             .payload("12345678")
                             .build();
    const Bytes forward = ends.from_client().options(record_route).tcp(40'000, 80, "S").build();
    const Bytes reverse = ends.from_backend(11).options(router_alert).tcp(9376, port, "SA").build();
    for (uint8_t queue = 0; queue < workers; ++queue) {
        EXPECT_TRUE(same_frame(gateway.send(forward, kUp, {queue}).frame,
                               ends.to_backend(11).options(record_route).tcp(port, 9376, "S").build()))
            << "the options stay as they came: the gateway records no route of its own";
        EXPECT_TRUE(same_frame(gateway.send(reverse, kCluster, {queue}).frame,
                               ends.to_client().options(router_alert).tcp(80, 40'000, "SA").build()));
    }
    punted("a ping to the host", ping, ping);
    punted("IGMP", report, report);

    gateway.set_packets({.passes_ip_options = false});
    dropped("of a flow, forward", forward, DropReason::IpOptions);
    dropped("of a flow, reverse", reverse, DropReason::IpOptions, kCluster);
    dropped("a ping to the host", ping, DropReason::IpOptions);
    dropped("a fragment",
            ends.from_client()
                .options(record_route)
                .more_fragments()
                .udp(5'000, kDnsPort)
                .payload("12345678")
                .build(),
            DropReason::IpOptions);
    dropped("behind a priority", tagged(forward, {kPriority}), DropReason::IpOptions);
    punted("IGMP, which needs them", report, report);
    const Bytes from_host =
        ends.ip(ends.to_uplink(), own, ends.client, 64).options(record_route).icmp(0, 0).build();
    EXPECT_TRUE(same_frame(gateway.send_from_host(from_host, kUp).frame, from_host))
        << "Linux has options of its own";
    for (uint8_t queue = 0; queue < workers; ++queue) {
        EXPECT_EQ(gateway.send(syn().build(), kUp, {queue}).verdict, Verdict::Transmit)
            << "and nobody else notices";
    }
}

TEST_P(Headers, EightExtensionHeadersPassAsTheyCame) {
    if (is_v4) {
        return;
    }
    const auto with_eight = [](PacketBuilder ip) {
        ip.hop_by_hop().routing(0, 0);
        for (int header = 0; header < 6; ++header) {
            ip.destination_options(static_cast<uint8_t>(header));
        }
        return ip;
    };
    const uint16_t port = open();
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const Outcome forward = gateway.send(
            with_eight(ends.from_client()).tcp(40'000, 80, "S").payload("data").build(), kUp, {queue});
        EXPECT_TRUE(same_frame(forward.frame,
                               with_eight(ends.to_backend(11)).tcp(port, 9376, "S").payload("data").build()));
        const Outcome reverse =
            gateway.send(with_eight(ends.from_backend(11)).tcp(9376, port, "SA").build(), kCluster, {queue});
        EXPECT_TRUE(same_frame(reverse.frame, with_eight(ends.to_client()).tcp(80, 40'000, "SA").build()));
    }
}

// A hop count of 0 or 1 ends here, for a first packet and for one of a flow alike. The ICMP error to the
// sender has other tests.
TEST_P(Headers, WhatHasNoHopLeftNeverReachesAnEndpoint_ICMP006) {
    const auto expired = [&](uint8_t ttl, uint16_t source_port) {
        PacketBuilder packet = ends.from_client();
        is_v4 ? packet.ttl(ttl) : packet.hop_limit(ttl);
        return packet.tcp(source_port, 80, "S").build();
    };
    for (const uint8_t ttl : {uint8_t{0}, uint8_t{1}}) {
        for (uint8_t queue = 0; queue < workers; ++queue) {
            const Outcome outcome = gateway.send(expired(ttl, 41'000), kUp, {queue});
            EXPECT_TRUE(outcome.verdict == Verdict::Drop || outcome.egress == kUp);
            EXPECT_EQ(gateway.connections(), 0u);
        }
    }
    open();
    for (const uint8_t ttl : {uint8_t{0}, uint8_t{1}}) {
        for (uint8_t queue = 0; queue < workers; ++queue) {
            const Outcome outcome = gateway.send(expired(ttl, 40'000), kUp, {queue});
            EXPECT_TRUE(outcome.verdict == Verdict::Drop || outcome.egress == kUp);
        }
    }
}

// Bytes after the IP packet are Ethernet's padding, or an attack. They are not data, and are removed.
TEST_P(Headers, WhatComesBehindThePacketStaysHere) {
    const uint16_t port = open();
    const auto with_trailer = [](const PacketBuilder& packet, size_t bytes) {
        Bytes frame = packet.build();
        frame.insert(frame.end(), bytes, 0xaa);
        return frame;
    };
    const auto expect = [&](const Outcome& outcome, const PacketBuilder& packet) {
        ASSERT_EQ(outcome.verdict, Verdict::Transmit) << text_of(outcome.reason).counter;
        EXPECT_TRUE(same_frame(outcome.frame, packet.build()));
    };
    const auto bytes = [](size_t count) { return Bytes(count, 'x'); };
    for (const size_t trailer : {size_t{1}, size_t{6}, size_t{20}, size_t{1'400}}) {
        for (uint8_t queue = 0; queue < workers; ++queue) {
            expect(gateway.send(with_trailer(syn(), trailer), kUp, {queue}),
                   ends.to_backend(11).tcp(port, 9376, "S"));
            expect(gateway.send(with_trailer(ends.from_backend(11).tcp(9376, port, "SA"), trailer), kCluster,
                                {queue}),
                   ends.to_client().tcp(80, 40'000, "SA"));
            expect(gateway.send(tagged(with_trailer(syn(), trailer), {kPriority}), kUp, {queue}),
                   ends.to_backend(11).tcp(port, 9376, "S"));
        }
    }
    // The first packet of a flow, a packet of an association, a fragment and a later one.
    const Outcome first =
        gateway.send(with_trailer(ends.from_client().udp(5'000, kDnsPort).payload("query"), 9));
    const L4Port dns_port = key_of(first).source_port;
    expect(first, ends.to_backend(11).udp(dns_port, 5353).payload("query"));
    const auto datagram =
        ends.from_client().udp(5'000, kDnsPort).payload(bytes(92)).build();  // with its header 100 bytes
    const auto as_sent = ends.to_backend(11).udp(dns_port, 5353).payload(bytes(92)).build();
    std::vector<Bytes> in = test::cut(datagram, 7, 48);
    for (Bytes& fragment : in) {
        fragment.insert(fragment.end(), 7, 0xaa);
    }
    std::vector<Bytes> out;
    for (size_t n = 0; n < in.size(); ++n) {
        const Outcome left = gateway.send(in[n]);
        if (n == 0) {
            out = test::cut(as_sent, test::id_of(left.frame), 48);  // the gateway's own id
        }
        EXPECT_TRUE(same_frame(left.frame, out[n])) << n;
    }
    const Outcome refusal =
        gateway.send(ends.from_client().tcp(40'000, kEmptyPort, "S").pad_to(1'514).build());
    ASSERT_EQ(refusal.verdict, Verdict::Transmit);
    EXPECT_EQ(refusal.frame.size(), 14u + (is_v4 ? 20 : 40) + 20) << "an answer has none";
}

TEST_P(Headers, JumboFramesPassWhereBothPortsTakeThem_NAT001) {
    gateway.set_mtu(9'000);
    const uint16_t port = open();
    gateway.send(ends.from_backend(11).tcp(9376, port, "SA").build(), kCluster);
    const std::string data(9'000 - (is_v4 ? 20 : 40) - 20, 'j');
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const Outcome forward =
            gateway.send(ends.from_client().tcp(40'000, 80, "PA").payload(data).build(), kUp, {queue});
        ASSERT_EQ(forward.verdict, Verdict::Transmit) << text_of(forward.reason).counter;
        EXPECT_TRUE(
            same_frame(forward.frame, ends.to_backend(11).tcp(port, 9376, "PA").payload(data).build()));
        const Outcome reverse = gateway.send(
            ends.from_backend(11).tcp(9376, port, "PA").payload(data).build(), kCluster, {queue});
        ASSERT_EQ(reverse.verdict, Verdict::Transmit) << text_of(reverse.reason).counter;
        EXPECT_TRUE(same_frame(reverse.frame, ends.to_client().tcp(80, 40'000, "PA").payload(data).build()));
    }
}

// The endpoint verifies a datagram's checksum: no checksum stays none, and a wrong one stays wrong.
TEST_P(Headers, TheSumOfADatagramStaysWhatItIs) {
    const auto query = [&] { return ends.from_client().udp(5'000, kDnsPort).payload("query"); };
    const Outcome first = gateway.send(query().build());
    ASSERT_EQ(first.verdict, Verdict::Transmit);
    const uint16_t port = key_of(first).source_port;
    const auto expected = [&] { return ends.to_backend(11).udp(port, 5353).payload("query"); };
    if (is_v4) {
        EXPECT_TRUE(same_frame(gateway.send(query().l4_checksum(0).build()).frame,
                               expected().l4_checksum(0).build()));
    }
    const size_t sum_at = 14 + (is_v4 ? 20 : 40) + offsetof(packet::UdpHeader, checksum);
    const Bytes right = query().build();
    const uint16_t right_sum = static_cast<uint16_t>(right[sum_at] << 8 | right[sum_at + 1]);
    const Bytes right_after = expected().build();
    for (uint16_t bit = 1; bit != 0; bit = static_cast<uint16_t>(bit << 1)) {
        const auto wrong = static_cast<uint16_t>(right_sum ^ bit);
        if (wrong == 0) {
            continue;
        }
        const Outcome outcome = gateway.send(query().l4_checksum(wrong).build());
        ASSERT_EQ(outcome.verdict, Verdict::Transmit);
        EXPECT_FALSE(std::ranges::equal(outcome.frame, right_after))
            << "a sum that was wrong by bit " << bit << " has been mended";
        EXPECT_NE(static_cast<uint16_t>(outcome.frame[sum_at] << 8 | outcome.frame[sum_at + 1]), 0)
            << "0 would say that none was sent";
    }
}

}  // namespace headers_test
}  // namespace penstock::test
