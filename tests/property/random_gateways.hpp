// SPDX-License-Identifier: Apache-2.0
// Two gateways with random Services, workers and secrets, and a random history of packets, for tests that
// compare what both send for the same packets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/reply_hashes.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test::random_gateways {

using packet::FlowKey;

inline const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
inline const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");

inline std::vector<TestService> services_of(Prng& random) {
    std::vector<TestService> services;
    L4Port port = 80;
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
        for (const lb::SourceMode source : {lb::SourceMode::Translate, lb::SourceMode::Keep}) {
            TestService& service = services.emplace_back();
            service.name = std::string(to_string(protocol)) + to_string(source);
            service.protocol = protocol;
            service.frontends = {{kVip, port}, {kVip6, port}};
            for (uint64_t n = random.between(1, 4); n > 0; --n) {
                service.backends.push_back(static_cast<uint8_t>(10 + 6 * n + random.below(6)));
            }
            service.backend_port = static_cast<L4Port>(9'000 + port);
            service.source = source;
            service.affinity_timeout_s = random.one_in(3) ? 10'800 : 0;
            service.affinity_epoch = static_cast<uint32_t>(random.between(1, 9));
            if (source == lb::SourceMode::Translate && random.one_in(2)) {
                service.endpoints_of = random.one_in(2) ? IpFamily::V4 : IpFamily::V6;
            }
            port = static_cast<L4Port>(port + 1);
        }
    }
    return services;
}

inline VirtualGateway::Options options_of(Prng& random) {
    VirtualGateway::Options options;
    options.workers = static_cast<uint32_t>(random.between(1, 4));
    options.flow_stays_on_queue = random.one_in(2);
    options.connections = static_cast<uint32_t>(random.between(600, 5'000));
    options.services = 16;
    options.backends = 128;
    options.affinity_entries = 4'096;
    if (random.one_in(2)) {
        for (auto* hash : {&options.up_hash, &options.cluster_hash}) {
            *hash = hash_in_turn(128, options.workers);
            do {
                (*hash)->key = random.bytes(40);
            } while (!obstacle_of(**hash, options.workers).empty());
        }
    }
    options.secrets_from = random.next();
    return options;
}

inline FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}

// The gateway with its NIC: flows are spread over the queues as the options say.
class Gateway {
 public:
    Gateway(const VirtualGateway::Options& options, uint64_t receivers_from)
        : gateway(options), receivers_from_(receivers_from) {}

    Outcome send(const std::vector<uint8_t>& frame, NicPortId port) {
        return gateway.send(frame, port, receiver(frame, port));
    }

    VirtualGateway gateway;

 private:
    WorkerId receiver(const std::vector<uint8_t>& frame, NicPortId port) {
        const VirtualGateway::Options& options = gateway.options();
        const FlowKey key = key_of(frame);
        const auto& hash = port == kUp ? options.up_hash : options.cluster_hash;
        if (hash && options.flow_stays_on_queue && hash->covers(key.source.family(), key.protocol)) {
            return hash->worker_of[plain_rss(hash->key, key) % hash->worker_of.size()];
        }
        // Any queue, but the same for all packets of the flow if the port promises that.
        uint64_t of_flow = receivers_from_ ^ std::hash<std::string>()(key.to_string());
        return {static_cast<uint8_t>(
            Prng(options.flow_stays_on_queue ? of_flow : of_flow + ++sent_).below(options.workers))};
    }

    uint64_t receivers_from_;
    uint64_t sent_ = 0;
};

inline PacketBuilder framed(const FlowKey& key, NicPortId port) {
    PacketBuilder builder = eth();
    builder.from_mac((port == kUp ? kClientMac : backend_mac(key.source.bytes()[15])).to_string())
        .to_mac((port == kUp ? kUpMac : kClusterMac).to_string());
    return key.source.is_v4() ? builder.ipv4(key.source.to_string(), key.destination.to_string())
                              : builder.ipv6(key.source.to_string(), key.destination.to_string());
}

enum class Step : uint8_t { Open, Answer, Data, Finish, Reset };

inline std::vector<uint8_t> frame_of(const FlowKey& key, NicPortId port, Step step, uint32_t n) {
    PacketBuilder builder = framed(key, port);
    switch (key.protocol) {
        case Protocol::Tcp: {
            static constexpr const char* kFlags[] = {"S", "SA", "A", "FA", "R"};
            return builder.tcp(key.source_port, key.destination_port, kFlags[static_cast<size_t>(step)])
                .seq(1'000 + n)
                .ack(step == Step::Open ? 0 : 2'000 + n)
                .build();
        }
        case Protocol::Udp:
            return builder.udp(key.source_port, key.destination_port).payload("data").build();
        case Protocol::Sctp:
            return step == Step::Open
                       ? builder.sctp(key.source_port, key.destination_port, 0).sctp_init(7).build()
                   : step == Step::Answer
                       ? builder.sctp(key.source_port, key.destination_port, 7).sctp_init_ack(9).build()
                       : builder.sctp(key.source_port, key.destination_port, port == kUp ? 9 : 7)
                             .chunk(step == Step::Finish ? 10 : 11, {1, 2, 3, 4})
                             .build();
    }
    return {};
}

// A packet whose family changed has an identification of the gateway's own. Without it, and without the
// checksum that covers it, which must be right.
inline std::vector<uint8_t> without_id(std::vector<uint8_t> frame) {
    if (frame.size() >= 34 && frame[12] == 0x08) {
        uint32_t sum = 0;
        for (size_t at = 14; at < 34; at += 2) {
            sum += uint32_t{frame[at]} << 8 | frame[at + 1];
        }
        EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffU);
        std::fill_n(frame.begin() + 18, 2, uint8_t{0});
        std::fill_n(frame.begin() + 24, 2, uint8_t{0});
    }
    return frame;
}

class TwoGateways : public testing::Test {
 protected:
    // Opens a flow, or continues one that is in `flows_`: by client key and the key of its replies.
    void act(Gateway& gateway, const std::vector<TestService>& services) {
        if (flows_.empty() || random_.one_in(3)) {
            const TestService& service = services[random_.below(services.size())];
            const auto& [vip, port] = service.frontends[random_.below(2)];
            const auto site = static_cast<uint8_t>(random_.between(1, 8));
            const auto host = static_cast<uint8_t>(random_.between(2, 250));
            const FlowKey key{vip.is_v4() ? IpAddr::v4(198, 51, site, host)
                                          : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, site, host}),
                              vip,
                              static_cast<L4Port>(random_.between(1'024, 65'535)),
                              port,
                              service.protocol,
                              {}};
            const Outcome opened = gateway.send(frame_of(key, kUp, Step::Open, 0), kUp);
            ASSERT_EQ(opened.verdict, Verdict::Transmit)
                << key.to_string() << " " << text_of(opened.reason).counter;
            flows_.push_back({key, key_of(opened.frame).reversed()});
            return;
        }
        const auto& [forward, reverse] = flows_[random_.below(flows_.size())];
        const bool from_client = random_.one_in(2);
        const Step step = random_.one_in(3)   ? Step::Answer
                          : random_.one_in(2) ? Step::Data
                          : random_.one_in(4) ? Step::Reset
                                              : Step::Finish;
        const NicPortId port = from_client ? kUp : kCluster;
        gateway.send(frame_of(from_client ? forward : reverse, port,
                              from_client && step == Step::Answer ? Step::Data : step, 1),
                     port);
    }

    static std::vector<conn::Connection> connections_of(VirtualGateway& gateway) {
        std::vector<conn::Connection> all;
        for (uint32_t w = 0; w < gateway.options().workers; ++w) {
            const conn::Table& table = gateway.worker(w).connections;
            for (uint32_t unit = 0; unit < table.high_water(); ++unit) {
                conn::Connection connection;
                if (table.read(unit, connection)) {
                    all.push_back(connection);
                }
            }
        }
        return all;
    }

    // All counts of a worker that follow from its connections.
    static void expect_balance(VirtualGateway& gateway) {
        for (uint32_t w = 0; w < gateway.options().workers; ++w) {
            pipeline::WorkerContext& ctx = gateway.worker(w);
            std::map<uint32_t, uint32_t> of_service, of_backend, open, of_prefix;
            uint32_t ports = 0;
            for (uint32_t unit = 0; unit < ctx.connections.high_water(); ++unit) {
                if (!ctx.connections.is_live(unit)) {
                    continue;
                }
                const conn::Entry& entry = ctx.connections.at({unit});
                ++of_service[entry.service.value];
                ++of_backend[entry.backend.value];
                open[entry.backend.value] += pipeline::is_open(entry) ? 1 : 0;
                ++of_prefix[pipeline::prefix_slot_of(entry, ctx.owner.mix)];
                ports += entry.source_kept ? 0 : 1;
            }
            EXPECT_EQ(ctx.snat_ports.in_use(), ports);
            for (uint32_t slot = 0; slot < pipeline::PrefixCounts::kSlots; ++slot) {
                ASSERT_EQ(ctx.prefixes.of(slot), of_prefix[slot]);
            }
            for (uint32_t service = 0; service < gateway.options().services; ++service) {
                ASSERT_EQ(ctx.counters.services[service].connections.read(), of_service[service]);
            }
            for (uint32_t backend = 0; backend < gateway.options().backends; ++backend) {
                ASSERT_EQ(ctx.counters.backends[backend].connections.read(), of_backend[backend]);
                ASSERT_EQ(ctx.counters.backends[backend].open.read(), open[backend]);
                uint32_t listed = 0;
                ctx.by_backend.for_each({backend}, [&](ConnectionIndex) { ++listed; });
                ASSERT_EQ(listed, of_backend[backend]);
            }
            stats::WorkerCounters& count = ctx.count();
            EXPECT_EQ(count[stats::Counter::Connections].read(), ctx.connections.size());
            EXPECT_EQ(count[stats::Counter::NewConnections].read() +
                          count[stats::Counter::AdoptedConnections].read() +
                          count[stats::Counter::ConnectionsTakenOver].read() -
                          count[stats::Counter::ClosedConnections].read(),
                      ctx.connections.size());
        }
    }

    // Both gateways send the same for a packet of either direction.
    static void expect_same(Gateway& one, Gateway& other, const conn::Connection& connection, Step step,
                            uint32_t n) {
        const std::pair<const FlowKey&, NicPortId> directions[] = {{connection.forward, kUp},
                                                                   {connection.reverse, kCluster}};
        for (const auto& [key, port] : directions) {
            const std::vector<uint8_t> frame = frame_of(key, port, step, n);
            const Outcome expected = one.send(frame, port);
            const Outcome outcome = other.send(frame, port);
            ASSERT_EQ(outcome.verdict, expected.verdict)
                << key.to_string() << ", state " << connection.state_name() << ": "
                << text_of(outcome.reason).counter << ", expected " << text_of(expected.reason).counter;
            if (expected.verdict != Verdict::Transmit) {
                ASSERT_EQ(outcome.reason, expected.reason) << key.to_string();
                continue;
            }
            const bool is_mixed = connection.forward.source.is_v4() != connection.reverse.source.is_v4();
            ASSERT_EQ(is_mixed ? without_id(outcome.frame) : outcome.frame,
                      is_mixed ? without_id(expected.frame) : expected.frame)
                << key.to_string();
            ASSERT_EQ(outcome.egress, expected.egress) << key.to_string();
        }
    }

    WorkerId anywhere(const Gateway& gateway) {
        return {static_cast<uint8_t>(random_.below(gateway.gateway.options().workers))};
    }

    // The same for a datagram in fragments, which are placed without the ports of the flow.
    void expect_same_fragments(Gateway& one, Gateway& other, const FlowKey& key, uint32_t n) {
        const VirtualGateway::Options& options = one.gateway.options();
        if (key.protocol == Protocol::Sctp || (options.flow_stays_on_queue && !options.up_hash)) {
            // A checksum that covers the whole datagram, or an owner that not even the former gateway finds
            // without the ports.
            return;
        }
        PacketBuilder builder = framed(key, kUp);
        const std::vector<uint8_t> whole =
            (key.protocol == Protocol::Tcp ? builder.tcp(key.source_port, key.destination_port)
                                           : builder.udp(key.source_port, key.destination_port))
                .payload(std::string(100, 'x'))
                .build();
        for (const std::vector<uint8_t>& piece : cut(whole, n + 1, 48)) {
            const Outcome expected = one.gateway.send(piece, kUp, anywhere(one));
            const Outcome outcome = other.gateway.send(piece, kUp, anywhere(other));
            ASSERT_EQ(outcome.verdict, expected.verdict) << key.to_string();
            if (expected.verdict != Verdict::Transmit) {
                return;
            }
            ++fragments_;
            // The identification of a translated datagram is the gateway's own.
            ASSERT_EQ(with_id(outcome.frame, 0), with_id(expected.frame, 0)) << key.to_string();
        }
    }

    // The same for ICMP errors about what is sent to the endpoint, and to the client. They come on any queue.
    void expect_same_errors(Gateway& one, Gateway& other, const conn::Connection& connection, uint32_t n) {
        const std::pair<const FlowKey&, NicPortId> directions[] = {{connection.forward, kUp},
                                                                   {connection.reverse, kCluster}};
        for (const auto& [key, port] : directions) {
            const Outcome about = one.send(frame_of(key, port, Step::Data, n), port);
            if (about.verdict != other.send(frame_of(key, port, Step::Data, n), port).verdict ||
                about.verdict != Verdict::Transmit) {
                continue;
            }
            const FlowKey sent = key_of(about.frame);
            const bool is_v4 = sent.source.is_v4();
            const NicPortId from = port == kUp ? kCluster : kUp;
            const IpAddr router = port == kUp ? backend_address(200, sent.source.family())
                                  : is_v4     ? kClient
                                              : kClient6;
            const std::vector<uint8_t> error =
                framed({.source = router, .destination = sent.source, .protocol = sent.protocol}, from)
                    .icmp(is_v4 ? 3 : 1, is_v4 ? 1 : 0)
                    .payload(std::vector<uint8_t>(about.frame.begin() + 14, about.frame.end()))
                    .build();
            const Outcome expected = one.gateway.send(error, from, anywhere(one));
            const Outcome outcome = other.gateway.send(error, from, anywhere(other));
            ASSERT_EQ(outcome.verdict, expected.verdict)
                << key.to_string() << ": " << text_of(outcome.reason).counter;
            errors_ += expected.verdict == Verdict::Transmit ? 1 : 0;
            if (connection.forward.source.is_v4() == connection.reverse.source.is_v4() &&
                expected.verdict == Verdict::Transmit) {
                ASSERT_EQ(outcome.frame, expected.frame) << key.to_string();
            }
        }
    }

    // Until every connection has been idle for its limit, both probes included.
    static void expire_all(VirtualGateway& gateway) {
        for (int times = 0; times < 4; ++times) {
            gateway.advance_seconds(100'000);
            gateway.age();
            gateway.take_own_segments();
        }
    }

    Prng random_;
    std::vector<std::pair<FlowKey, FlowKey>> flows_;
    uint64_t fragments_ = 0, errors_ = 0;  // that were translated
};

}  // namespace penstock::test::random_gateways
