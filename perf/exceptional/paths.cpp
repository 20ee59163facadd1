// SPDX-License-Identifier: Apache-2.0
#include "perf/exceptional/paths.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "tests/support/fragment_cutter.hpp"
#include "tests/support/prng.hpp"

namespace penstock::perf {
namespace {

using stats::Counter;
using test::kCluster;
using test::kUp;
using test::PacketBuilder;
using Frames = std::vector<FrameBytes>;

constexpr uint32_t kBurst = limits::kBurstMax;
constexpr uint32_t kNewFlows = 4'096;
// Number of datagrams after which the table, which evicts the oldest, no longer has the first one.
constexpr uint32_t kForgotten = 8 * limits::kFragmentedDatagramsMax;
constexpr size_t kPiece = 256;  // bytes of a datagram in a fragment
constexpr size_t kEthernetBytes = 14;
constexpr uint8_t kData = 0;

class Maker {
 public:
    explicit Maker(const test::Ends& ends) : ends_(ends) {}

    std::vector<Journey> make() {
        const auto common = std::make_shared<Road>(ends_);
        flows(common);
        errors(common);
        own_answers(common);
        headers(common);
        other_family(common);
        fragments(common);
        return std::move(journeys_);
    }

 private:
    [[nodiscard]] bool is_v4() const { return ends_.family == IpFamily::V4; }
    static uint16_t port_of(uint32_t n) { return static_cast<uint16_t>(Road::kFirstPort + n); }

    static Frames burst_of(const std::function<FrameBytes(uint32_t)>& one, uint32_t count = kBurst,
                           uint32_t first = 0) {
        Frames frames;
        for (uint32_t n = first; n < first + count; ++n) {
            frames.push_back(one(n));
        }
        return frames;
    }
    // Bursts with `count` different packets in total.
    static std::vector<Step> bursts_of(const std::function<FrameBytes(uint32_t)>& one, uint32_t count,
                                       const Step& like) {
        std::vector<Step> steps;
        for (uint32_t first = 0; first < count; first += kBurst) {
            steps.push_back(like);
            steps.back().frames = burst_of(one, kBurst, first);
        }
        return steps;
    }
    // A packet of each flow, as its client sends it.
    [[nodiscard]] Frames from_clients(
        const std::function<PacketBuilder(PacketBuilder, uint16_t)>& say) const {
        return burst_of([&](uint32_t n) { return say(ends_.from_client(), port_of(n)).build(); });
    }
    [[nodiscard]] Frames segments(const char* flags) const {
        return from_clients(
            [&](PacketBuilder packet, uint16_t port) { return packet.tcp(port, Road::kTcpPort, flags); });
    }

    void add(const std::shared_ptr<Road>& road, Path path) { journeys_.push_back({std::move(path), road}); }
    // One burst that is forwarded, and the counter of its packets.
    void add_sent(const std::shared_ptr<Road>& road, std::string name, Frames frames, Counter counter,
                  NicPortId port = kUp) {
        const uint64_t packets = frames.size();
        add(road,
            {.name = std::move(name), .steps = {{port, std::move(frames)}}, .counts = {{counter, packets}}});
    }
    void add_dropped(const std::shared_ptr<Road>& road, std::string name, Frames frames, DropReason reason,
                     NicPortId port = kUp) {
        add(road, {.name = std::move(name), .steps = {{port, std::move(frames), Verdict::Drop, reason}}});
    }

    void flows(const std::shared_ptr<Road>& common) {
        add_sent(common, "established", segments("A"), Counter::ConnectionHits);
        const auto opens = [&](std::string name, const std::function<FrameBytes(uint32_t)>& first_packet) {
            add(std::make_shared<Road>(ends_), {.name = std::move(name),
                                                .steps = bursts_of(first_packet, kNewFlows, {.port = kUp}),
                                                .counts = {{Counter::NewConnections, kNewFlows}},
                                                .opens_flows = true});
        };
        const auto new_port = [](uint32_t n) { return static_cast<uint16_t>(20'000 + n); };
        opens("tcp_new",
              [&](uint32_t n) { return ends_.from_client().tcp(new_port(n), Road::kTcpPort, "S").build(); });
        opens("sctp_new", [&](uint32_t n) {
            return ends_.from_client()
                .sctp(new_port(n), Road::kSctpPort, 0)
                .sctp_init(Road::kClientTag)
                .build();
        });
        const auto data = [&](uint32_t tag) {
            return from_clients([=](PacketBuilder packet, uint16_t port) {
                return packet.sctp(port, Road::kSctpPort, tag).chunk(kData, FrameBytes(28, 'd'));
            });
        };
        add_sent(common, "sctp_data", data(Road::kEndpointTag), Counter::ConnectionHits);
        add_dropped(common, "sctp_wrong_tag", data(Road::kEndpointTag + 1), DropReason::SctpWrongTag);
        const auto rst = std::make_shared<Road>(ends_);
        const Frames from_endpoints = burst_of([&](uint32_t n) {
            return ends_.from_backend(Road::kHost)
                .tcp(Road::kTcpEndpointPort, rst->tcp_port_at_endpoint(n), "A")
                .build();
        });
        add(rst, {.name = "rst_and_back",
                  .steps = {{.port = kUp,
                             .frames = segments("R"),
                             .state = static_cast<uint8_t>(conn::TcpState::RstForward)},
                            {.port = kCluster,
                             .frames = from_endpoints,
                             .state = static_cast<uint8_t>(conn::TcpState::RstForward)},
                            {.port = kUp,
                             .frames = segments("A"),
                             .state = static_cast<uint8_t>(conn::TcpState::Established)}},
                  .counts = {{Counter::ConnectionHits, 3 * kBurst}}});
        // From the endpoint's port, to a client without a flow.
        add_dropped(common, "stray_reply", burst_of([&](uint32_t n) {
                        return ends_.from_backend_to_client(Road::kHost)
                            .udp(Road::kKeptEndpointPort, port_of(n))
                            .payload("late")
                            .build();
                    }),
                    DropReason::StrayReply, kCluster);
    }

    // Host unreachable, about a packet that the gateway has sent.
    [[nodiscard]] FrameBytes error(PacketBuilder to_gateway, const FrameBytes& about) const {
        return to_gateway.icmp(is_v4() ? 3 : 1, is_v4() ? 1 : 3)
            .payload(FrameBytes(about.begin() + kEthernetBytes, about.end()))
            .build();
    }

    void errors(const std::shared_ptr<Road>& common) {
        const auto from_endpoint = [&] { return ends_.from_backend(Road::kHost); };
        add_sent(common, "error_from_endpoint",
                 burst_of([&](uint32_t n) { return error(from_endpoint(), common->to_endpoint(n)); }),
                 Counter::IcmpErrorsTranslated, kCluster);
        add_sent(common, "error_from_client",
                 burst_of([&](uint32_t n) { return error(ends_.from_client(), common->to_client(n)); }),
                 Counter::IcmpErrorsTranslated);
        // The maximum length of an error (RFC 1812, 4.3.2.3; RFC 4443, 2.4): the checksums of outer packet
        // and quote cover all of it.
        const size_t quoted = is_v4() ? 576 - 28 : 1'280 - 48;
        const Frames long_ones = burst_of([&](uint32_t n) {
            const FrameBytes whole = common->sent(
                ends_.from_client().udp(port_of(n), Road::kUdpPort).payload(FrameBytes(1'300, 'q')).build(),
                kUp);
            return error(from_endpoint(),
                         FrameBytes(whole.begin(),
                                    whole.begin() + static_cast<std::ptrdiff_t>(kEthernetBytes + quoted)));
        });
        add_sent(common, "error_long_quote", long_ones, Counter::IcmpErrorsTranslated, kCluster);
        add_dropped(common, "error_unknown", burst_of([&](uint32_t n) {
                        const auto nobodys = static_cast<uint16_t>(1'024 + n);
                        return error(
                            ends_.from_client(),
                            ends_.to_client().udp(Road::kUdpPort, nobodys).payload("answer").build());
                    }),
                    DropReason::IcmpUnknownFlow);
    }

    // Packets that the gateway itself sends.
    void own_answers(const std::shared_ptr<Road>& common) {
        add_sent(common, "echo", from_clients([&](PacketBuilder packet, uint16_t port) {
                     return packet.icmp(is_v4() ? 8 : 128, 0, port).payload(FrameBytes(56, 'p'));
                 }),
                 Counter::EchoReplies);
        const FrameBytes too_long(1'480, 'x');
        const auto datagram = [&](PacketBuilder packet, uint16_t port) {
            return packet.udp(port, Road::kUdpPort).payload(too_long);
        };
        add_sent(common, "too_big", from_clients([&](PacketBuilder packet, uint16_t port) {
                     return datagram(is_v4() ? packet.dont_fragment() : packet, port);
                 }),
                 Counter::IcmpErrorsSent);
        if (is_v4()) {
            add(common, {.name = "cut",
                         .steps = {{kUp, from_clients(datagram), Verdict::Split}},
                         .counts = {{Counter::ConnectionHits, kBurst}},
                         .is_disposed_of = true});
        }
        add_sent(common, "time_exceeded", from_clients([&](PacketBuilder packet, uint16_t port) {
                     return (is_v4() ? packet.ttl(1) : packet.hop_limit(1))
                         .udp(port, Road::kUdpPort)
                         .payload("query");
                 }),
                 Counter::IcmpErrorsSent);
        const Frames refused = from_clients(
            [](PacketBuilder packet, uint16_t port) { return packet.tcp(port, Road::kEmptyPort, "S"); });
        add_sent(common, "rst", refused, Counter::Rejected);
        add_sent(common, "port_unreachable", from_clients([](PacketBuilder packet, uint16_t port) {
                     return packet.udp(port, Road::kEmptyPort).payload("query");
                 }),
                 Counter::Rejected);
        add_sent(common, "sctp_refused", from_clients([](PacketBuilder packet, uint16_t port) {
                     return packet.sctp(port, Road::kEmptyPort, 0).sctp_init(Road::kClientTag);
                 }),
                 Counter::Rejected);
        // The result for most packets of a flood.
        const auto silent = std::make_shared<Road>(ends_, Road::Policy{.answers_one_packet_only = true});
        silent->send(refused.front(), kUp);
        add_dropped(silent, "reject_limited", refused, DropReason::RejectLimited);
    }

    void headers(const std::shared_ptr<Road>& common) {
        const auto tagged = [](FrameBytes frame) {
            const FrameBytes tag = {0x81, 0x00, 0xa0, 0x00};  // priority 5, VLAN 0
            frame.insert(frame.begin() + 12, tag.begin(), tag.end());
            return frame;
        };
        Frames with_priority = segments("A");
        std::ranges::transform(with_priority, with_priority.begin(), tagged);
        add_sent(common, "priority_tag", with_priority, Counter::ConnectionHits);
        if (!is_v4()) {
            add_sent(common, "extension_headers", from_clients([](PacketBuilder packet, uint16_t port) {
                         return packet.hop_by_hop().destination_options().tcp(port, Road::kTcpPort, "A");
                     }),
                     Counter::ConnectionHits);
            return;
        }
        const auto with_options = [&](const FrameBytes& options) {
            return from_clients([=](PacketBuilder packet, uint16_t port) {
                return packet.options(options).tcp(port, Road::kTcpPort, "A");
            });
        };
        const FrameBytes router_alert = {148, 4, 0, 0}, loose_source_route = {131, 7, 4, 10, 80, 2, 11};
        add_sent(common, "ip_options", with_options(router_alert), Counter::ConnectionHits);
        add_dropped(std::make_shared<Road>(ends_, Road::Policy{.passes_ip_options = false}),
                    "ip_options_refused", with_options(router_alert), DropReason::IpOptions);
        add_dropped(common, "source_route", with_options(loose_source_route), DropReason::IpOptions);
    }

    // Datagrams that leave as packets of the other family, and an endpoint's ICMP errors about them.
    void other_family(const std::shared_ptr<Road>& common) {
        const auto datagram = [&](size_t bytes) {
            return from_clients([&, bytes](PacketBuilder packet, uint16_t port) {
                return (is_v4() ? packet.dont_fragment() : packet)
                    .udp(port, Road::kOtherPort)
                    .payload(FrameBytes(bytes, 'o'));
            });
        };
        add_sent(common, "other_family", datagram(5), Counter::ConnectionHits);
        add_sent(common, "other_family_long", datagram(1'400), Counter::ConnectionHits);
        const test::Ends other = is_v4() ? test::ends6() : test::ends4();
        add_sent(common, "other_family_error", burst_of([&](uint32_t n) {
                     const FrameBytes& about = common->to_other_endpoint(n);
                     return other.from_backend(Road::kHost)
                         .icmp(is_v4() ? 1 : 3, is_v4() ? 3 : 1)
                         .payload(FrameBytes(about.begin() + kEthernetBytes, about.end()))
                         .build();
                 }),
                 Counter::IcmpErrorsTranslated, kCluster);
    }

    // Fragment `which` of the n-th datagram, which has two. The datagram is of the first flow, or of a forged
    // source of its own.
    [[nodiscard]] FrameBytes fragment(uint32_t n, size_t which, bool is_forged = false) {
        FrameBytes frame = pieces_[which];
        const auto put = [&](size_t at, uint64_t value, size_t bytes) {
            for (size_t b = 0; b < bytes; ++b) {
                frame[at + b] = static_cast<uint8_t>(value >> 8 * (bytes - 1 - b));
            }
        };
        if (is_v4()) {
            put(18, n, 2);
            if (is_forged) {
                put(26, 0x64400000 + forged_.below(1 << 20), 4);  // 100.64.0.0/12
            }
            put(24, 0, 2);
            put(24, test::reference_checksum(ByteView(frame).subspan(kEthernetBytes, 20)), 2);
        } else {
            put(58, n, 4);
            if (is_forged) {
                put(30, forged_.next(), 8);  // the second half of the address
            }
        }
        return frame;
    }

    void fragments(const std::shared_ptr<Road>& common) {
        constexpr uint32_t kPairs = kBurst / 2;
        add_sent(common, "fragments_in_order", burst_of([&](uint32_t n) { return fragment(n / 2, n % 2); }),
                 Counter::ConnectionHits);
        journeys_.back().path.counts = {{Counter::ConnectionHits, kPairs},
                                        {Counter::FragmentsForwarded, kPairs}};
        add(std::make_shared<Road>(ends_),
            {.name = "fragments_held",
             .steps = {{kUp, burst_of([&](uint32_t n) { return fragment(n, 1); }, kPairs), Verdict::Await},
                       {kUp, burst_of([&](uint32_t n) { return fragment(n, 0); }, kPairs)}},
             .counts = {{Counter::FragmentsHeld, kPairs},
                        {Counter::ConnectionHits, kPairs},
                        {Counter::FragmentsForwarded, kPairs}},
             .is_disposed_of = true});

        const auto of_first = [&](uint32_t n) { return fragment(n, 0); };
        const auto twice = std::make_shared<Road>(ends_);
        const Frames firsts = burst_of(of_first);
        for (const FrameBytes& frame : firsts) {
            twice->sent(frame, kUp);
        }
        add_dropped(twice, "fragment_duplicate", firsts, DropReason::FragmentOverlap);
        // Datagrams that are never completed, in a table full of others.
        const auto full = std::make_shared<Road>(ends_);
        for (const FrameBytes& frame : burst_of(of_first, 2 * limits::kFragmentedDatagramsMax, kForgotten)) {
            full->sent(frame, kUp);
        }
        add(full, {.name = "fragment_first_flood",
                   .steps = bursts_of(of_first, kForgotten, {.port = kUp}),
                   .counts = {{Counter::ConnectionHits, kForgotten}},
                   .time_passes = true});
        // Later fragments of unknown datagrams, while others occupy all places.
        const auto flooded = std::make_shared<Road>(ends_);
        for (uint32_t n = 0; n < 4 * limits::kFragmentsWaitingMax; ++n) {
            flooded->send(fragment(n, 1, true), kUp);
        }
        const Step dropped{
            .port = kUp, .frames = {}, .verdict = Verdict::Drop, .reason = DropReason::FragmentsFull};
        add(flooded,
            {.name = "fragment_flood",
             .steps = bursts_of([&](uint32_t n) { return fragment(n, 1, true); }, kForgotten, dropped),
             .time_passes = true});
        // The more-fragments flag is set, and the length is not a multiple of 8.
        const FrameBytes impossible = test::fragment_like(datagram_, 7, kPiece, true, FrameBytes(60, 'b'));
        add_dropped(common, "fragment_impossible", Frames(kBurst, impossible), DropReason::BadFragment);
    }

    test::Ends ends_;
    std::vector<Journey> journeys_;
    FrameBytes datagram_ =
        ends_.from_client().udp(port_of(0), Road::kUdpPort).payload(FrameBytes(2 * kPiece - 8, 'f')).build();
    Frames pieces_ = test::cut(datagram_, 1, kPiece);
    test::Prng forged_{1};
};

}  // namespace

std::vector<Journey> exceptional_journeys(const test::Ends& ends) {
    return Maker(ends).make();
}

}  // namespace penstock::perf
