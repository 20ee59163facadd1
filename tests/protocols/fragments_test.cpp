// SPDX-License-Identifier: Apache-2.0
// Fragments follow the first fragment of their datagram, which follows its flow: in any order, from any queue
// of any worker. The output is compared with fragment_cutter's fragments of the translated whole datagram,
// which covers addresses, every checksum and each byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/pipeline/fragments/fragment_table.hpp"

#include "tests/protocols/one_endpoint.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/prng.hpp"

namespace penstock::test {
namespace fragments_test {

using Frame = std::vector<uint8_t>;
using Frames = std::vector<Frame>;
using stats::Counter;

constexpr uint32_t kManyWorkers = 4;
constexpr size_t kEthernetPiece = 1448;  // bytes of a datagram in 1,500 bytes of either family

packet::FlowKey key_of(const Frame& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed.key;
}

Frame payload_of(size_t bytes, uint64_t start = 1) {
    return Prng(start).bytes(bytes);
}

// Compares frames without their identification.
testing::AssertionResult same_but_id(const Frame& actual, const Frame& expected) {
    return same_frame(with_id(actual, 0), with_id(expected, 0));
}

// Compares the forwarded frames in any order. Frames with equal identification in `expected` must have an
// equal one in `actual`, and different ones must differ.
testing::AssertionResult same_frames(const Frames& actual, const Frames& expected) {
    if (actual.size() != expected.size()) {
        return testing::AssertionFailure() << actual.size() << " frames, expected " << expected.size();
    }
    const auto sorted = [](const Frames& frames) {
        std::vector<std::pair<Frame, uint32_t>> with_ids;
        for (const Frame& frame : frames) {
            with_ids.emplace_back(with_id(frame, 0), id_of(frame));
        }
        std::ranges::sort(with_ids);
        return with_ids;
    };
    const auto are = sorted(actual), should_be = sorted(expected);
    std::map<uint32_t, uint32_t> of_expected, of_actual;
    for (size_t i = 0; i < are.size(); ++i) {
        if (const auto same = same_frame(are[i].first, should_be[i].first); !same) {
            return same;
        }
        if (of_expected.try_emplace(should_be[i].second, are[i].second).first->second != are[i].second ||
            of_actual.try_emplace(are[i].second, should_be[i].second).first->second != should_be[i].second) {
            return testing::AssertionFailure()
                   << "a datagram with the id " << should_be[i].second << " has a fragment with the id "
                   << are[i].second << ", which is not that of its others, or is another datagram's";
        }
    }
    return testing::AssertionSuccess();
}

class Fragments : public ThroughOneEndpoint {
 protected:
    Prng random;
    uint32_t next_id = 1;

    // IPv4's id is in the whole packet as well. This has no effect on cut(), and in the comparison the
    // fragments' id counts.
    WorkerId any_queue() { return {static_cast<uint8_t>(random.below(workers))}; }
    // Opens a flow by a small datagram. Returns the port that the endpoint sees.
    uint16_t open(L4Port client_port = 5000) {
        const Outcome first =
            gateway.send(ends.from_client().udp(client_port, 53).payload("?").build(), kUp, any_queue());
        EXPECT_EQ(first.verdict, Verdict::Transmit) << to_string(first.verdict);
        return key_of(first.frame).source_port;
    }
    // Sends each on a queue of any worker. Returns all frames that left in the end.
    Frames pass(const Frames& frames, NicPortId port) {
        Frames left;
        for (const Frame& frame : frames) {
            const Outcome outcome = gateway.send(frame, port, any_queue());
            if (outcome.verdict == Verdict::Transmit) {
                left.push_back(outcome.frame);
            } else {
                EXPECT_EQ(outcome.verdict, Verdict::Await)
                    << to_string(outcome.verdict) << " "
                    << (outcome.verdict == Verdict::Drop ? text_of(outcome.reason).counter : "");
            }
            for (const Outcome& released : gateway.take_released()) {
                EXPECT_EQ(released.verdict, Verdict::Transmit)
                    << to_string(released.verdict) << " "
                    << (released.verdict == Verdict::Drop ? text_of(released.reason).counter : "");
                left.push_back(released.frame);
            }
        }
        return left;
    }
    [[nodiscard]] uint32_t datagrams() {
        uint32_t sum = 0;
        for (uint32_t w = 0; w < workers; ++w) {
            sum += gateway.worker(w).fragments.datagrams();
        }
        return sum;
    }
    [[nodiscard]] uint32_t waiting() {
        uint32_t sum = 0;
        for (uint32_t w = 0; w < workers; ++w) {
            sum += gateway.worker(w).fragments.waiting();
        }
        return sum;
    }
    void expect_drop(const Outcome& outcome, DropReason reason, const std::string& what = "") {
        EXPECT_EQ(outcome.verdict, Verdict::Drop) << what << ": " << to_string(outcome.verdict);
        EXPECT_EQ(text_of(outcome.reason).counter, text_of(reason).counter) << what;
    }
};

INSTANTIATE_TEST_SUITE_P(All, Fragments,
                         testing::Combine(testing::Values(1, 2, kManyWorkers),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep)));

TEST_P(Fragments, InOrderOpenAFlowAndAreAnswered_NAT007_NAT001) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    for (L4Port n = 0; n < 20; ++n) {
        const L4Port client_port = static_cast<L4Port>(5000 + n);
        const Frame query = payload_of(4000, n), answer = payload_of(9000, 100 + n);
        const Frames in =
            cut(ends.from_client().udp(client_port, 53).payload(query).build(), ++next_id, kEthernetPiece);
        ASSERT_EQ(in.size(), 3u);
        const Frames out = pass(in, kUp);
        ASSERT_EQ(out.size(), 3u);
        packet::Parsed parsed;
        ASSERT_TRUE(packet::parse(out[0], parsed).has_value());
        const uint16_t port = load<Be16>(out[0].data() + parsed.l4_offset).host();
        if (!translated) {
            EXPECT_EQ(port, client_port);
        }
        EXPECT_TRUE(same_frames(
            out, cut(to_endpoint().udp(port, 5353).payload(query).build(), next_id, kEthernetPiece)));
        const Frames back =
            cut(from_endpoint().udp(5353, port).payload(answer).build(), ++next_id, kEthernetPiece);
        EXPECT_TRUE(same_frames(
            pass(back, kCluster),
            cut(ends.to_client().udp(53, client_port).payload(answer).build(), next_id, kEthernetPiece)));
    }
    EXPECT_EQ(gateway.connections(), 20u);
    EXPECT_EQ(gateway.count(Counter::FragmentsForwarded), 20u * (2 + 6));
    EXPECT_EQ(gateway.count(Counter::FragmentsHeld), 0u) << "in order nobody waits";
    EXPECT_EQ(datagrams(), 0u) << "what is complete is forgotten";
}

// All orders of four, each fragment on a queue of any worker.
TEST_P(Fragments, InAnyOrderFollowTheFirst_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    std::array<size_t, 4> order{};
    std::iota(order.begin(), order.end(), 0);
    do {
        const Frame query = payload_of(400, next_id);
        const Frames pieces = cut(ends.from_client().udp(5000, 53).payload(query).build(), ++next_id, 104);
        ASSERT_EQ(pieces.size(), order.size());
        const auto in_order = [&](const Frames& whole) {
            Frames turned;
            for (const size_t at : order) {
                turned.push_back(whole[at]);
            }
            return turned;
        };
        EXPECT_TRUE(same_frames(pass(in_order(pieces), kUp),
                                cut(to_endpoint().udp(port, 5353).payload(query).build(), next_id, 104)));
        const Frames back = cut(from_endpoint().udp(5353, port).payload(query).build(), ++next_id, 104);
        EXPECT_TRUE(same_frames(pass(in_order(back), kCluster),
                                cut(ends.to_client().udp(53, 5000).payload(query).build(), next_id, 104)));
    } while (std::ranges::next_permutation(order).found);
    EXPECT_EQ(gateway.connections(), 1u) << "a fragmented datagram is of the flow that whole ones are of";
    EXPECT_EQ(datagrams(), 0u);
    EXPECT_EQ(waiting(), 0u);
    EXPECT_EQ(gateway.service_counters(0, "protocols-UDP-53").dropped.read(), 0u);
}

// Released in the order of arrival, after the first fragment.
TEST_P(Fragments, ThatWaitedLeaveInTheOrderInWhichTheyCame_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    const Frame query = payload_of(60'000);
    Frames pieces = cut(ends.from_client().udp(5000, 53).payload(query).build(), 7, kEthernetPiece);
    ASSERT_EQ(pieces.size(), 42u);
    Frames expected = cut(to_endpoint().udp(port, 5353).payload(query).build(), 7, kEthernetPiece);
    std::ranges::reverse(pieces);
    const Frames left = pass(pieces, kUp);
    std::rotate(expected.begin(), expected.begin() + 1, expected.end());
    std::ranges::reverse(expected);  // the first one, then the others in reverse order
    ASSERT_EQ(left.size(), 42u);
    for (size_t i = 0; i < left.size(); ++i) {
        EXPECT_TRUE(same_but_id(left[i], expected[i])) << i;
        EXPECT_EQ(id_of(left[i]), id_of(left[0])) << i;
    }
    if (workers == 1) {  // other workers find the note of the first one at handoff
        EXPECT_EQ(gateway.count(Counter::FragmentsHeld), 41u);
    }
    EXPECT_EQ(waiting(), 0u);
    EXPECT_EQ(datagrams(), 0u);
}

// A whole burst at once, shuffled, other flows' packets in between.
TEST_P(Fragments, OfManyDatagramsInOneBurst_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    for (uint32_t round = 0; round < 50; ++round) {
        Frames burst, expected;
        for (uint32_t n = 0; n < 12; ++n) {
            const Frame query = payload_of(8 + random.below(1200), next_id);
            const auto add = [](Frames& to, const Frames& more) {
                to.insert(to.end(), more.begin(), more.end());
            };
            const Frame whole = ends.from_client().udp(5000, 53).payload(query).build();
            const Frame translated_whole = to_endpoint().udp(port, 5353).payload(query).build();
            const size_t piece = 8 * random.between(31, 64);
            ++next_id;
            if (query.size() + 8 > piece) {
                add(burst, cut(whole, next_id, piece));
                add(expected, cut(translated_whole, next_id, piece));
            } else {
                burst.push_back(whole);
                expected.push_back(translated_whole);
            }
        }
        for (size_t i = burst.size(); i > 1; --i) {
            std::swap(burst[i - 1], burst[random.below(i)]);
        }
        Frames left;
        for (const Outcome& outcome : gateway.send_burst(burst, kUp, any_queue())) {
            if (outcome.verdict == Verdict::Transmit) {
                left.push_back(outcome.frame);
            } else {
                ASSERT_EQ(outcome.verdict, Verdict::Await) << to_string(outcome.verdict);
            }
        }
        for (const Outcome& released : gateway.take_released()) {
            ASSERT_EQ(released.verdict, Verdict::Transmit);
            left.push_back(released.frame);
        }
        ASSERT_TRUE(same_frames(left, expected)) << "round " << round;
    }
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(datagrams(), 0u);
}

// An endpoint reassembles fragments by addresses and identification. If it sees the gateway's address for all
// clients, a client must not be able to join its first fragment to another client's later ones, and this must
// not happen by chance either. A client with its own address can affect only itself.
TEST_P(Fragments, OfTwoClientsWithOneIdAreNotJoined_NAT007_RFC6864_5_3_1) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const IpAddr attacker = family == IpFamily::V4 ? IpAddr::v4(10, 80, 1, 66) : v6_on_link(1, 66);
    for (int round = 0; round < 40; ++round) {
        const Frames victims = cut(ends.from_client().udp(5000, 53).payload(payload_of(2'000)).build(),
                                   ++next_id, kEthernetPiece);
        const Frames attackers = cut(ends.ip(Ends::from_uplink(), attacker, ends.vip, 64)
                                         .udp(5000, 53)
                                         .payload(payload_of(2'000, 7))
                                         .build(),
                                     next_id, kEthernetPiece);
        ASSERT_EQ(victims.size(), 2u);
        const Frames left = pass({victims[0], attackers[0], victims[1], attackers[1]}, kUp);
        ASSERT_EQ(left.size(), 4u);
        EXPECT_EQ(id_of(left[0]), id_of(left[2]));
        EXPECT_EQ(id_of(left[1]), id_of(left[3]));
        if (translated) {
            EXPECT_NE(id_of(left[0]), id_of(left[1]));
        } else {
            EXPECT_EQ(id_of(left[0]), next_id) << "the client's own, with the client's own address";
            EXPECT_EQ(id_of(left[1]), next_id);
        }
    }
}

// The same for answers of two endpoints at a client, which sees the Service's address for both of them.
TEST_P(Fragments, OfTwoEndpointsWithOneIdAreNotJoined_NAT007_RFC6864_5_3_1) {
    TestService service = service_on_both(Protocol::Udp, 53, 5353, source);
    service.backends = {11, 12};
    gateway.publish({service});
    std::map<uint8_t, Frames> answers;  // by endpoint
    for (L4Port client_port = 5'000; answers.size() < 2 && client_port < 5'100; ++client_port) {
        const Outcome query =
            gateway.send(ends.from_client().udp(client_port, 53).payload("?").build(), kUp, any_queue());
        const packet::FlowKey inside = key_of(query.frame);
        const uint8_t host = inside.destination.bytes()[15];
        answers[host] = cut(ends.ip(Ends::from_cluster(host), inside.destination, inside.source, 64)
                                .udp(5353, inside.source_port)
                                .payload(payload_of(2'000, host))
                                .build(),
                            77, kEthernetPiece);
    }
    ASSERT_EQ(answers.size(), 2u);
    const Frames left = pass({answers[11][0], answers[12][0], answers[11][1], answers[12][1]}, kCluster);
    ASSERT_EQ(left.size(), 4u);
    EXPECT_EQ(id_of(left[0]), id_of(left[2]));
    EXPECT_EQ(id_of(left[1]), id_of(left[3]));
    EXPECT_NE(id_of(left[0]), id_of(left[1]));
}

TEST_P(Fragments, OfTcpSegmentsFollowTheirConnection_NAT007) {
    gateway.publish({service_on_both(Protocol::Tcp, 80, 9376, source)});
    const Outcome syn = gateway.send(ends.from_client().tcp(40000, 80, "S").seq(7).build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    const uint16_t port = key_of(syn.frame).source_port;
    ASSERT_EQ(gateway.send(from_endpoint().tcp(9376, port, "SA").seq(90).ack(8).build(), kCluster).verdict,
              Verdict::Transmit);
    const Frame data = payload_of(1400);
    Frames pieces = cut(ends.from_client().tcp(40000, 80, "PA").seq(8).ack(91).payload(data).build(), 9, 600);
    std::ranges::reverse(pieces);
    EXPECT_TRUE(
        same_frames(pass(pieces, kUp),
                    cut(to_endpoint().tcp(port, 9376, "PA").seq(8).ack(91).payload(data).build(), 9, 600)));
}

// Two workers may have a connection of one key, after the path of a client has changed to a port with
// another rule of placement. The worker of a datagram may be the one whose connection whole datagrams do not
// reach any more.
TEST_P(Fragments, AreServedByTheConnectionOfWholeDatagrams_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    if (workers == 1 || source == lb::SourceMode::Keep) {
        return;  // there is one connection
    }
    const auto promise = [this](bool stays) {
        for (uint32_t w = 0; w < workers; ++w) {
            gateway.worker(w).ports[kUp.value].promises.flow_stays_on_queue = stays;
        }
    };
    constexpr WorkerId kFormer{0};
    L4Port client_port = 6000;
    Outcome kept, moved;
    do {
        const Frame query = ends.from_client().udp(++client_port, 53).payload("?").build();
        promise(true);
        kept = gateway.send(query, kUp, kFormer);
        ASSERT_EQ(kept.worker, kFormer) << "opened where it arrived";
        promise(false);
        moved = gateway.send(query, kUp, any_queue());
        ASSERT_EQ(moved.verdict, Verdict::Transmit);
    } while (moved.worker == kFormer);  // this key has the same owner under both rules
    const uint16_t port = key_of(moved.frame).source_port;
    ASSERT_NE(port, key_of(kept.frame).source_port) << "two connections of one key";
    for (uint32_t id = 1; id <= 64; ++id) {
        const Frames pieces =
            cut(ends.from_client().udp(client_port, 53).payload(payload_of(100)).build(), id, 48);
        const Outcome first = gateway.send(pieces[0], kUp, any_queue());
        ASSERT_EQ(first.verdict, Verdict::Transmit);
        packet::Parsed parsed;
        ASSERT_TRUE(packet::parse(first.frame, parsed).has_value());
        EXPECT_EQ(load<Be16>(first.frame.data() + parsed.l4_offset).host(), port) << "datagram " << id;
    }
}

TEST_P(Fragments, CarryAnAbsentUdpChecksumAsItIs_NAT007_NAT001) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    const auto whole = [](PacketBuilder ip, uint16_t from, uint16_t to) {
        return ip.udp(from, to).payload(payload_of(100)).l4_checksum(0).build();
    };
    const Frames pieces = cut(whole(ends.from_client(), 5000, 53), 3, 48);
    if (family == IpFamily::V4) {
        EXPECT_TRUE(same_frames(pass(pieces, kUp), cut(whole(to_endpoint(), port, 5353), 3, 48)));
        return;
    }
    expect_drop(gateway.send(pieces[0]), DropReason::NoUdpChecksum);
    expect_drop(gateway.send(pieces[1]), DropReason::Fragment, "the rest of it");
}

// Over IPv6 the headers after the fragment header belong to the datagram, and only the first fragment has
// them.
TEST_P(Fragments, WithDestinationOptionsAreReadBehindThem_NAT007) {
    if (family == IpFamily::V4) {
        return;  // no such headers
    }
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    Frames pieces =
        cut(ends.from_client().destination_options().udp(5000, 53).payload(payload_of(300)).build(), 3, 48);
    std::swap(pieces[0], pieces[2]);
    EXPECT_TRUE(same_frames(
        pass(pieces, kUp),
        cut(to_endpoint().destination_options().udp(port, 5353).payload(payload_of(300)).build(), 3, 48)));
}

TEST_P(Fragments, OfADatagramWhoseFirstIsDroppedAreDropped_NAT007) {
    TestService guarded = service_on_both(Protocol::Udp, 53, 5353, source);
    guarded.source_ranges = {{*Prefix::parse("203.0.113.0/24"), *Prefix::parse("2001:db8:113::/48")}};
    TestService empty = service_on_both(Protocol::Udp, 54, 5353, source);
    empty.backends = {};
    TestService open_to_all = service_on_both(Protocol::Udp, 55, 5353, source);
    gateway.publish({guarded, empty, open_to_all});
    const struct {
        const char* name;
        PacketBuilder whole;
        DropReason reason;
    } cases[] = {
        {"source ranges", ends.from_client().udp(5000, 53), DropReason::SourceNotAllowed},
        {"no endpoint: a reject cannot be told from a wrong checksum", ends.from_client().udp(5000, 54),
         DropReason::RejectNotAllowed},
        {"undeclared port", ends.from_client().udp(5000, 5), DropReason::VipPortClosed},
        {"port 0", ends.from_client().udp(0, 55), DropReason::BadL4Header},
        {"another protocol", ends.from_client().icmp(family == IpFamily::V4 ? 8 : 128, 0),
         DropReason::Fragment},
    };
    for (const auto& c : cases) {
        PacketBuilder whole = c.whole;
        const Frames pieces = cut(whole.payload(payload_of(100)).build(), ++next_id, 48);
        // One of the others waits and is released by the result of the first one; one arrives after it.
        const Outcome early = gateway.send(pieces[2], kUp, any_queue());
        const bool is_known_at_once = early.verdict == Verdict::Drop;
        EXPECT_TRUE(early.verdict == Verdict::Await || is_known_at_once) << c.name;
        expect_drop(gateway.send(pieces[0], kUp, any_queue()), c.reason, c.name);
        const std::vector<Outcome> released = gateway.take_released();
        ASSERT_EQ(released.size(), is_known_at_once ? 0u : 1u) << c.name;
        expect_drop(is_known_at_once ? early : released[0], DropReason::Fragment, c.name);
        expect_drop(gateway.send(pieces[1], kUp, any_queue()), DropReason::Fragment, c.name);
    }
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(waiting(), 0u);
}

// Overlapping and contradictory fragments, by the byte: the fragments of a datagram of `bytes`, in the order
// of arrival.
TEST_P(Fragments, ThatContradictOneAnotherAreDroppedByName_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    const Frame whole = ends.from_client().udp(5000, 53).payload(payload_of(248)).build();
    const Frame translated_whole = to_endpoint().udp(port, 5353).payload(payload_of(248)).build();
    const size_t header = 14 + (family == IpFamily::V4 ? 20 : 40);
    struct Piece {
        size_t begin, end;
        bool more;
    };
    // Leaves at once or later. The value is a reason that no fragment gets.
    static constexpr DropReason kLeaves = DropReason::FrameTooShort;
    struct Step {
        Piece piece;
        DropReason dropped = kLeaves;
    };
    const struct {
        const char* name;
        std::vector<Step> steps;
    } cases[] = {
        {"a duplicate costs nobody else anything",
         {{{0, 64, true}, kLeaves},
          {{0, 64, true}, DropReason::FragmentOverlap},
          {{64, 256, false}, kLeaves}}},
        {"nor one that is inside of two",
         {{{0, 64, true}, kLeaves},
          {{64, 128, true}, kLeaves},
          {{32, 96, true}, DropReason::FragmentOverlap},
          {{128, 256, false}, kLeaves}}},
        {"one that is part new",
         {{{0, 64, true}, kLeaves},
          {{56, 128, true}, DropReason::FragmentOverlap},
          {{64, 256, false}, DropReason::Fragment}}},
        {"one that reaches into the next",
         {{{0, 64, true}, kLeaves},
          {{128, 256, false}, kLeaves},
          {{64, 136, true}, DropReason::FragmentOverlap},
          {{64, 128, true}, DropReason::Fragment}}},
        {"one around another",
         {{{0, 64, true}, kLeaves},
          {{128, 136, true}, kLeaves},
          {{64, 256, false}, DropReason::FragmentOverlap},
          {{64, 128, true}, DropReason::Fragment}}},
        {"an end before what was there",
         {{{0, 128, true}, kLeaves},
          {{128, 192, true}, kLeaves},
          {{64, 128, false}, DropReason::BadFragment},
          {{192, 256, false}, DropReason::Fragment}}},
        {"two ends",
         {{{0, 128, true}, kLeaves},
          {{192, 256, false}, kLeaves},
          {{128, 200, false}, DropReason::BadFragment},
          {{128, 192, true}, DropReason::Fragment}}},
        {"more behind the end",
         {{{0, 128, true}, kLeaves},
          {{192, 200, false}, kLeaves},
          {{200, 256, true}, DropReason::BadFragment}}},
        {"no whole units, and not the last", {{{0, 60, true}, DropReason::BadFragment}}},
        {"nothing in it",
         {{{64, 64, true}, DropReason::BadFragment}, {{64, 64, false}, DropReason::BadFragment}}},
        {"no whole UDP header cannot be cut at 8 bytes, but nothing behind it can",
         {{{0, 8, true}, kLeaves}, {{8, 256, false}, kLeaves}}},
    };
    for (const auto& c : cases) {
        ++next_id;
        Frames left, expected;
        for (const Step& step : c.steps) {
            const auto make = [&](const Frame& of) {
                const Piece& p = step.piece;
                return fragment_like(of, next_id, p.begin, p.more,
                                     ByteView(of).subspan(header + p.begin, p.end - p.begin));
            };
            const Outcome outcome = gateway.send(make(whole), kUp, any_queue());
            if (step.dropped == kLeaves) {
                EXPECT_EQ(outcome.verdict, Verdict::Transmit)
                    << c.name << ", from " << step.piece.begin << ": " << text_of(outcome.reason).counter;
                EXPECT_TRUE(same_but_id(outcome.frame, make(translated_whole))) << c.name;
            } else {
                expect_drop(outcome, step.dropped,
                            std::string(c.name) + ", from " + std::to_string(step.piece.begin));
            }
        }
    }
}

// An attack that is detected while others wait for the first one drops these as well.
TEST_P(Fragments, ThatWaitAreDroppedWithADeadDatagram_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const Frame whole = ends.from_client().udp(5000, 53).payload(payload_of(248)).build();
    const Frames pieces = cut(whole, 5, 64);
    EXPECT_EQ(gateway.send(pieces[1], kUp, any_queue()).verdict, Verdict::Await);
    EXPECT_EQ(gateway.send(pieces[2], kUp, any_queue()).verdict, Verdict::Await);
    expect_drop(gateway.send(fragment_like(whole, 5, 96, true, payload_of(128)), kUp, any_queue()),
                DropReason::FragmentOverlap);
    const std::vector<Outcome> released = gateway.take_released();
    ASSERT_EQ(released.size(), 2u);
    expect_drop(released[0], DropReason::Fragment);
    expect_drop(released[1], DropReason::Fragment);
    expect_drop(gateway.send(pieces[0], kUp, any_queue()), DropReason::Fragment,
                "not even the first one leaves");
    EXPECT_EQ(waiting(), 0u);
    EXPECT_EQ(gateway.connections(), 0u);
}

// After the detection, the presence of the first fragment in the same burst releases none of the others.
TEST_P(Fragments, OfADatagramThatDiesInItsFirstBurstAreDropped_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const Frame whole = ends.from_client().udp(5000, 53).payload(payload_of(248)).build();
    const Frames pieces = cut(whole, 5, 64);
    Frames burst = {pieces[0], pieces[1], fragment_like(whole, 5, 96, true, payload_of(128)), pieces[3]};
    const std::vector<Outcome> outcomes = gateway.send_burst(burst, kUp, any_queue());
    expect_drop(outcomes[1], DropReason::Fragment);
    expect_drop(outcomes[2], DropReason::FragmentOverlap);
    expect_drop(outcomes[3], DropReason::Fragment);
    expect_drop(gateway.send(pieces[2], kUp, any_queue()), DropReason::Fragment, "the datagram is dead");
    EXPECT_TRUE(gateway.take_released().empty());
    EXPECT_EQ(waiting(), 0u);
}

// An expired datagram is not created anew while some of its fragments are being dropped.
TEST_P(Fragments, ThatDieWhenTheirDatagramIsOldAreDroppedWithIt_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const Frame whole = ends.from_client().udp(5000, 53).payload(payload_of(248)).build();
    const Frames pieces = cut(whole, 5, 64);
    const WorkerId queue = any_queue();
    EXPECT_EQ(gateway.send(pieces[1], kUp, queue).verdict, Verdict::Await);
    gateway.advance_milliseconds(pipeline::kDatagramMs);
    const std::vector<Outcome> outcomes = gateway.send_burst(
        {fragment_like(whole, 5, 96, true, payload_of(128)), pieces[3], pieces[0]}, kUp, queue);
    expect_drop(outcomes[0], DropReason::FragmentOverlap);
    expect_drop(outcomes[1], DropReason::Fragment);
    expect_drop(outcomes[2], DropReason::Fragment);
    const std::vector<Outcome> released = gateway.take_released();
    ASSERT_EQ(released.size(), 1u);
    expect_drop(released[0], DropReason::Fragment);
    EXPECT_EQ(waiting(), 0u);
}

// RFC 1858 and RFC 3128; RFC 8200, 4.5 and RFC 7112 for the whole header chain.
TEST_P(Fragments, ThatHideTheTransportHeaderAreDropped_NAT007) {
    gateway.publish(
        {service_on_both(Protocol::Tcp, 80, 9376, source), service_on_both(Protocol::Udp, 53, 5353, source)});
    const Frame tcp = ends.from_client().tcp(40000, 80, "S").payload(payload_of(100)).build();
    const Frame optioned = ends.from_client()
                               .tcp(40000, 80, "S")
                               .tcp_options({2, 4, 5, 180, 1, 1, 1, 1})
                               .payload(payload_of(100))
                               .build();
    const size_t header = 14 + (family == IpFamily::V4 ? 20 : 40);
    const auto first_of = [&](const Frame& whole, size_t bytes) {
        return fragment_like(whole, ++next_id, 0, true, ByteView(whole).subspan(header, bytes));
    };
    expect_drop(gateway.send(first_of(tcp, 8)), DropReason::FragmentTooSmall, "only the ports");
    expect_drop(gateway.send(first_of(tcp, 16)), DropReason::FragmentTooSmall, "half a header");
    expect_drop(gateway.send(first_of(optioned, 24)), DropReason::FragmentTooSmall, "half the options");
    EXPECT_EQ(gateway.send(first_of(tcp, 24)).verdict, Verdict::Transmit) << "a whole header";
    for (const size_t begin : {8, 16}) {
        expect_drop(gateway.send(fragment_like(tcp, ++next_id, begin, true, payload_of(16))),
                    DropReason::FragmentTooSmall,
                    "flags over those of a first one, at " + std::to_string(begin));
    }
    const Frame udp = ends.from_client().udp(5000, 53).payload(payload_of(100)).build();
    if (family == IpFamily::V6) {
        const Frame behind =
            ends.from_client().destination_options(3).udp(5000, 53).payload(payload_of(100)).build();
        expect_drop(gateway.send(first_of(behind, 16)), DropReason::FragmentTooSmall,
                    "a chain of headers that goes on in the next one");
        expect_drop(gateway.send(first_of(behind, 32)), DropReason::FragmentTooSmall,
                    "a chain that ends where the UDP header begins");
        const Frame nested =
            ends.from_client().fragment(0, false).udp(5000, 53).payload(payload_of(100)).build();
        expect_drop(gateway.send(first_of(nested, 48)), DropReason::BadExtensionHeader,
                    "a fragment of a fragment");
        const Frame hops = ends.from_client().hop_by_hop().udp(5000, 53).payload(payload_of(100)).build();
        expect_drop(gateway.send(first_of(hops, 48)), DropReason::BadExtensionHeader,
                    "hop-by-hop options behind a fragment header");
    }
    // Beyond the longest datagram: the last units that an offset can name.
    expect_drop(gateway.send(fragment_like(udp, ++next_id, 65'528, false, payload_of(16))),
                DropReason::BadFragment, "beyond 65,535");
    EXPECT_EQ(waiting(), 0u);
}

TEST_P(Fragments, WaitForAWhileOnly_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    const Frames pieces = cut(ends.from_client().udp(5000, 53).payload(payload_of(248)).build(), 5, 64);
    const WorkerId queue = any_queue();
    EXPECT_EQ(gateway.send(pieces[1], kUp, queue).verdict, Verdict::Await);
    gateway.advance_milliseconds(pipeline::kFragmentWaitMs / 2);
    EXPECT_EQ(gateway.send(pieces[2], kUp, queue).verdict, Verdict::Await);
    gateway.advance_milliseconds(pipeline::kFragmentWaitMs / 2 - 1);
    gateway.expire_fragments();
    EXPECT_TRUE(gateway.take_released().empty());
    gateway.advance_milliseconds(1);
    gateway.expire_fragments();
    const std::vector<Outcome> expired = gateway.take_released();
    ASSERT_EQ(expired.size(), 2u) << "whoever waits with the oldest has lost as much";
    expect_drop(expired[0], DropReason::FragmentExpired);
    expect_drop(expired[1], DropReason::FragmentExpired);
    EXPECT_EQ(waiting(), 0u);
    expect_drop(gateway.send(pieces[0], kUp, queue), DropReason::Fragment,
                "too late: what would follow it is gone");
    // The id is free again after the datagram's timeout.
    gateway.advance_milliseconds(pipeline::kDatagramMs);
    EXPECT_TRUE(same_frames(pass(pieces, kUp),
                            cut(to_endpoint().udp(port, 5353).payload(payload_of(248)).build(), 5, 64)));
}

TEST_P(Fragments, OfAFlowThatEndedMeanwhileAreDropped_NAT007) {
    const TestService service = service_on_both(Protocol::Udp, 53, 5353, source);
    gateway.publish({service});
    const Frames pieces = cut(ends.from_client().udp(5000, 53).payload(payload_of(248)).build(), 5, 64);
    ASSERT_EQ(gateway.send(pieces[0]).verdict, Verdict::Transmit);
    gateway.order({.backend = gateway.backend_of(service, 11, family)});
    gateway.work_off_orders();
    ASSERT_EQ(gateway.connections(), 0u);
    expect_drop(gateway.send(pieces[1]), DropReason::Fragment);
    // Another connection in the same place of the table has another generation.
    open(6000);
    expect_drop(gateway.send(pieces[2]), DropReason::Fragment);
}

TEST_P(Fragments, ToAnUnresolvedNextHopAreHeldLikeTheFirst_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    gateway.set_unresolved({11});
    for (const Frame& piece : cut(ends.from_client().udp(5000, 53).payload(payload_of(248)).build(), 5, 64)) {
        EXPECT_EQ(gateway.send(piece, kUp, any_queue()).verdict, Verdict::Hold);
    }
}

TEST_P(Fragments, WhoseTimeRunsOutAreDroppedOneByOne_NAT007_ICMP006) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const Frames pieces = cut(ends.from_client().udp(5000, 53).payload(payload_of(248)).build(), 5, 64);
    const Frames dying = cut(
        ends.ip(Ends::from_uplink(), ends.client, ends.vip, 1).udp(5000, 53).payload(payload_of(248)).build(),
        5, 64);
    EXPECT_EQ(gateway.send(pieces[0]).verdict, Verdict::Transmit);
    expect_drop(gateway.send(dying[1]), DropReason::TtlExpired);
    EXPECT_EQ(gateway.send(pieces[2]).verdict, Verdict::Transmit);
}

// ICMP errors may be about a first fragment, and about no other (RFC 1122, 3.2.2).
TEST_P(Fragments, OfAFirstThatIsAnsweredAreDropped_NAT007_ICMP006) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const Frames dying = cut(
        ends.ip(Ends::from_uplink(), ends.client, ends.vip, 1).udp(5000, 53).payload(payload_of(248)).build(),
        5, 64);
    const Outcome answer = gateway.send(dying[0]);
    ASSERT_EQ(answer.verdict, Verdict::Transmit) << text_of(answer.reason).counter;
    EXPECT_EQ(answer.egress, kUp);
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(answer.frame, parsed).has_value());
    EXPECT_EQ(parsed.key.destination, ends.client);
    EXPECT_EQ(answer.frame[parsed.l4_offset], family == IpFamily::V4 ? 11 : 3) << "time exceeded";
    expect_drop(gateway.send(dying[1]), DropReason::Fragment);
    EXPECT_EQ(gateway.connections(), 0u);
}

// Linux uses the SNAT addresses too. Packets without a flow are Linux's there, in any order, including
// answers to its own requests.
TEST_P(Fragments, ToTheHostThatAreNoFlowsAreLinuxs_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const auto to_host = [&] {
        return ends.ip(Ends::from_uplink(), ends.client, family == IpFamily::V4 ? kUpAddress : kUpAddress6,
                       64);
    };
    for (const bool reversed : {false, true}) {
        Frames pieces = cut(to_host().udp(5000, 5001).payload(payload_of(248)).build(), ++next_id, 64);
        if (reversed) {
            std::ranges::reverse(pieces);
        }
        uint32_t at_linux = 0;
        for (const Frame& piece : pieces) {
            const Outcome outcome = gateway.send(piece, kUp, any_queue());
            EXPECT_TRUE(outcome.verdict == Verdict::Punt || outcome.verdict == Verdict::Await)
                << to_string(outcome.verdict);
            EXPECT_TRUE(outcome.verdict != Verdict::Punt || outcome.frame == piece) << "as it came";
            at_linux += outcome.verdict == Verdict::Punt ? 1 : 0;
            for (const Outcome& released : gateway.take_released()) {
                EXPECT_EQ(released.verdict, Verdict::Punt);
                EXPECT_EQ(released.egress, kUp);
                ++at_linux;
            }
        }
        EXPECT_EQ(at_linux, pieces.size());
    }
    const uint8_t echo = family == IpFamily::V4 ? 8 : 128;
    for (const Frame& piece : cut(to_host().icmp(echo, 0).payload(payload_of(248)).build(), ++next_id, 64)) {
        EXPECT_EQ(gateway.send(piece, kUp, any_queue()).verdict, Verdict::Punt)
            << "a large ping of the gateway";
    }
    Frame sctp = to_host().ip_protocol(132).payload(payload_of(248)).build();
    expect_drop(gateway.send(cut(sctp, ++next_id, 64)[0], kUp, any_queue()), DropReason::Fragment,
                "SCTP that may be an endpoint's; Linux would abort the association");
    if (family == IpFamily::V4) {  // IPv6's later fragments have no reliable protocol field
        EXPECT_EQ(datagrams(), 0u);
    }
}

// An endpoint on the host: Linux receives the fragments of a request, and the fragments of its answer are
// translated.
TEST_P(Fragments, ToAndFromAnEndpointOnTheHost_NAT007_EP007) {
    TestService service = service_on_both(Protocol::Udp, 53, 5353, source);
    service.backends = {1};  // the gateway's own address on the cluster's link
    gateway.publish({service});
    const IpAddr host = family == IpFamily::V4 ? kClusterAddress : kClusterAddress6;
    const Frames in = cut(ends.from_client().udp(5000, 53).payload(payload_of(248)).build(), ++next_id, 64);
    uint16_t port = 0;
    for (const Frame& piece : in) {
        const Outcome outcome = gateway.send(piece, kUp, any_queue());
        ASSERT_EQ(outcome.verdict, Verdict::Punt) << text_of(outcome.reason).counter;
        EXPECT_EQ(outcome.egress, kUp) << "all by the twin that Linux routes the client by";
        if (port == 0) {
            port = load<Be16>(outcome.frame.data() + (family == IpFamily::V4 ? 34 : 62)).host();
        }
    }
    const auto from_linux = [&] { return ends.ip(Ends::to_uplink(), host, ends.client, 64); };
    Frames out;
    for (const Frame& piece :
         cut(from_linux().udp(5353, port).payload(payload_of(248)).build(), ++next_id, 64)) {
        const Outcome outcome = gateway.send_from_host(piece, kUp);
        ASSERT_EQ(outcome.verdict, Verdict::Transmit) << text_of(outcome.reason).counter;
        out.push_back(outcome.frame);
    }
    EXPECT_TRUE(
        same_frames(out, cut(ends.to_client().udp(53, 5000).payload(payload_of(248)).build(), next_id, 64)));
    // Linux's packets to other hosts leave unchanged.
    for (const Frame& piece :
         cut(from_linux().udp(123, 124).payload(payload_of(248)).build(), ++next_id, 64)) {
        const Outcome outcome = gateway.send_from_host(piece, kUp);
        EXPECT_EQ(outcome.verdict, Verdict::Transmit);
        EXPECT_EQ(outcome.frame, piece);
    }
    EXPECT_EQ(datagrams(), 0u);
}

// After a flood has evicted their datagram, the owner of fragments is unknown.
TEST_P(Fragments, OfAnEndpointOnTheHostNeverShowItsAddress_NAT007_NAT006_EP007) {
    TestService service = service_on_both(Protocol::Udp, 53, 5353, source);
    service.backends = {1};
    gateway.publish({service});
    const auto later_one_from = [&](const IpAddr& host) {
        const Frame like = ends.ip(Ends::to_uplink(), host, ends.client, 64)
                               .udp(5353, 5000)
                               .payload(payload_of(248))
                               .build();
        return gateway.send_from_host(cut(like, ++next_id, 64)[2], kUp, any_queue());
    };
    expect_drop(later_one_from(family == IpFamily::V4 ? kClusterAddress : kClusterAddress6),
                DropReason::Fragment);
    EXPECT_EQ(later_one_from(family == IpFamily::V4 ? kUpAddress : kUpAddress6).verdict, Verdict::Transmit)
        << "no endpoint's address";
    EXPECT_EQ(later_one_from(backend_address(12, family)).verdict, Verdict::Transmit)
        << "what Linux forwards";
    EXPECT_EQ(datagrams(), 0u);
}

TEST_P(Fragments, OfTheHostToAServiceAreTranslated_NAT007_ETP006) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const IpAddr host = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    const auto from_linux = [&] { return ends.ip(Ends::to_uplink(), host, ends.vip, 64); };
    const Frames in = cut(from_linux().udp(5000, 53).payload(payload_of(248)).build(), ++next_id, 64);
    Frames out;
    for (const Frame& piece : in) {
        const Outcome outcome = gateway.send_from_host(piece, kUp);
        ASSERT_EQ(outcome.verdict, Verdict::Transmit) << text_of(outcome.reason).counter;
        out.push_back(outcome.frame);
    }
    const uint16_t port = load<Be16>(out[0].data() + (family == IpFamily::V4 ? 34 : 62)).host();
    EXPECT_TRUE(same_frames(
        out, cut(ends.to_backend(11).udp(port, 5353).payload(payload_of(248)).build(), next_id, 64)))
        << "for the host the source is always translated";
    expect_drop(gateway.send_from_host(fragment_like(in[0], 99, 64, true, payload_of(64)), kUp),
                DropReason::Fragment, "Linux sends in order: this one's first was no flow's");
}

TEST_P(Fragments, OfABlockedSourceAreDropped_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    gateway.set_blocked_sources(route::PrefixSet(
        {*Prefix::parse(ends.client.to_string() + (family == IpFamily::V4 ? "/32" : "/128"))}));
    for (const Frame& piece : cut(ends.from_client().udp(5000, 53).payload(payload_of(248)).build(), 5, 64)) {
        expect_drop(gateway.send(piece), DropReason::SourceBlocked);
    }
    EXPECT_EQ(datagrams(), 0u);
    EXPECT_EQ(waiting(), 0u);
}

// A waiting fragment holds its datagram. It must release the datagram even if the new configuration drops the
// fragment at once. Otherwise the datagram would keep its place for ever.
TEST_P(Fragments, ThatComeBackToAnotherConfigurationHoldNothing_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    for (const bool blocks : {true, false}) {
        if (!blocks && family == IpFamily::V6) {
            continue;  // no options
        }
        PacketBuilder datagram = ends.from_client();
        if (!blocks) {
            datagram.options({148, 4, 0, 0});
        }
        const Frame late = cut(datagram.udp(5000, 53).payload(payload_of(248)).build(), ++next_id, 64)[1];
        const Outcome waits = gateway.send(late, kUp, any_queue());
        ASSERT_EQ(waits.verdict, Verdict::Await) << text_of(waits.reason).counter;
        packet::Parsed parsed;
        ASSERT_TRUE(packet::parse(late, parsed).has_value());
        const uint8_t protocol = family == IpFamily::V4 ? parsed.ip_protocol : uint8_t{0};
        const auto key = pipeline::DatagramKey::of(parsed.key.source, parsed.key.destination, protocol,
                                                   packet::datagram_id(late, parsed), {});
        pipeline::WorkerContext& worker = gateway.worker(waits.worker.value);
        const auto place = packet::fragment_range(late, parsed);
        ASSERT_TRUE(place.has_value());
        const auto first = worker.fragments.take(key, {.begin = 0, .end = place->begin}, worker.now);
        ASSERT_TRUE(first.has_value());
        worker.fragments.decide(*first, {.kind = pipeline::DatagramFate::Kind::Host});
        worker.fragments.served(*first);
        if (blocks) {
            gateway.set_blocked_sources(route::PrefixSet(
                {*Prefix::parse(ends.client.to_string() + (family == IpFamily::V4 ? "/32" : "/128"))}));
        } else {
            gateway.set_packets({.passes_ip_options = false});
        }
        gateway.send(
            ends.ip(Ends::from_uplink(), backend_address(200, family), ends.vip, 64).udp(1, 53).build(), kUp,
            waits.worker);
        const auto released = gateway.take_released();
        ASSERT_EQ(released.size(), 1u);
        expect_drop(released[0], blocks ? DropReason::SourceBlocked : DropReason::IpOptions);
        EXPECT_EQ(waiting(), 0u);
        EXPECT_FALSE(worker.fragments.is_known(key, worker.now + worker.rate.seconds(6)))
            << "it may leave when it is old";
        gateway.set_blocked_sources({});
        gateway.set_packets({});
    }
}

// In a full table one-sided connections are evicted for new flows. The note of a datagram must not lead to
// the connection that has their place afterwards.
class FragmentsInAFullTable : public testing::Test {
 protected:
    static constexpr uint32_t kFull = 2;  // a new flow of IPv6 takes both
    static constexpr L4Port kOpenPort = 53, kClosedPort = 54;
    FragmentsInAFullTable() {
        TestService closed = service_on_both(Protocol::Udp, kClosedPort, 5454);
        closed.name = "closed";
        closed.backends = {12};
        closed.source_ranges = std::vector<Prefix>{*Prefix::parse("10.80.1.9/32"), *Prefix::parse("::/0")};
        gateway.publish({service_on_both(Protocol::Udp, kOpenPort, 5353), closed});
    }
    void open(L4Port client_port) {
        ASSERT_EQ(gateway.send(ends.from_client().udp(client_port, kOpenPort).payload("?").build()).verdict,
                  Verdict::Transmit);
        gateway.advance_seconds(2);  // so that the first flow is the oldest
    }
    Frames pieces_of(L4Port client_port) {
        return cut(ends.from_client().udp(client_port, kOpenPort).payload(payload_of(248)).build(), 5, 64);
    }
    // The first fragment and the packet whose connection takes its place, in one burst; then a later
    // fragment.
    void rest_is_dropped(L4Port client_port, const Frame& newcomer) {
        const Frames pieces = pieces_of(client_port);
        const std::vector<Outcome> outcomes = gateway.send_burst({pieces[0], newcomer}, kUp, {0});
        ASSERT_EQ(outcomes[0].verdict, Verdict::Transmit);
        ASSERT_EQ(outcomes[1].verdict, Verdict::Transmit) << text_of(outcomes[1].reason).counter;
        const Outcome later = gateway.send(pieces[1]);
        EXPECT_EQ(later.verdict, Verdict::Drop) << to_string(later.verdict);
        EXPECT_EQ(later.reason, DropReason::Fragment);
    }
    const Ends ends = ends4();
    VirtualGateway gateway{VirtualGateway::Options{.connections = kFull}};
};

TEST_F(FragmentsInAFullTable, DoNotFollowTheFlowThatTookTheirs_NAT007) {
    open(5000);
    open(5001);
    const IpAddr other = IpAddr::v4(10, 80, 1, 9);
    rest_is_dropped(
        5000, ends.ip(Ends::from_uplink(), other, ends.vip, 64).udp(6000, kClosedPort).payload("x").build());
}

TEST_F(FragmentsInAFullTable, DoNotFollowAnIpv6FlowThatTookTheirs_NAT007) {
    for (const L4Port first :
         {L4Port{5000}, L4Port{5001}}) {  // once in the even place and once in the odd one
        open(5000);
        open(5001);
        rest_is_dropped(first, ends6().from_client().udp(6000, kOpenPort).payload("x").build());
        gateway.advance_seconds(3600);
        gateway.age();
        gateway.expire_fragments();
    }
}

// The place of a removed connection may contain half of an IPv6 one. Its client chooses the bytes in the
// position of the generation.
TEST_F(FragmentsInAFullTable, TakeNoAddressForAGeneration_NAT007) {
    open(5001);
    const Frames pieces = pieces_of(5000);
    ASSERT_EQ(gateway.send(pieces[0]).verdict, Verdict::Transmit);
    conn::Table& table = gateway.worker(0).connections;
    const uint32_t generation = table.generation({1});
    gateway.advance_seconds(1);
    std::array<uint8_t, 16> chosen{0, 0, 0, 0, 0x0a};
    std::memcpy(chosen.data(), &generation, sizeof generation);
    const Outcome newcomer = gateway.send(ends6()
                                              .ip(Ends::from_uplink(), IpAddr::v6(chosen), ends6().vip, 64)
                                              .udp(6000, kOpenPort)
                                              .payload("x")
                                              .build());
    ASSERT_EQ(newcomer.verdict, Verdict::Transmit) << text_of(newcomer.reason).counter;
    ASSERT_FALSE(table.is_live(1));
    ASSERT_EQ(table.generation({1}), generation);
    EXPECT_EQ(gateway.send(pieces[1]).reason, DropReason::Fragment);
    gateway.age();
}

// Limits of waiting fragments: per datagram, per source, and in total. The places become free again.
TEST_P(Fragments, ThatWaitAreBounded_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const Frame like = ends.from_client().udp(5000, 53).payload(payload_of(8)).build();
    const auto later = [&](const Frame& of, uint32_t id, size_t n) {
        return fragment_like(of, id, 64 + 16 * n, true, payload_of(16));
    };
    uint32_t held = 0;
    for (uint32_t n = 0; n < limits::kFragmentsWaitingPerDatagram + 8; ++n) {
        const Outcome outcome = gateway.send(later(like, 1, n));
        outcome.verdict == Verdict::Await ? void(++held) : expect_drop(outcome, DropReason::FragmentsFull);
    }
    EXPECT_EQ(held, limits::kFragmentsWaitingPerDatagram);
    // The limit per source is higher. The worker of an id depends on a secret, so consecutive ids may go to
    // few workers for some time.
    for (uint32_t id = 2;
         id < 60'000 && (id < 1'000 || waiting() < workers * limits::kFragmentsWaitingPerSource); ++id) {
        const Outcome outcome = gateway.send(later(like, id, 0));
        outcome.verdict == Verdict::Await ? void() : expect_drop(outcome, DropReason::FragmentsFull);
    }
    EXPECT_EQ(waiting(), workers * limits::kFragmentsWaitingPerSource);
    // Many sources.
    for (uint32_t n = 0; n < 4 * workers * limits::kFragmentsWaitingMax; ++n) {
        const IpAddr far = family == IpFamily::V4
                               ? IpAddr::v4(198, 51, static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n))
                               : IpAddr::v6({0x20, 1, 0xd, 0xb8, 9, 9, 0, 0, 0, 0, 0, 0,
                                             static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n), 1, 1});
        const Outcome outcome = gateway.send(later(
            ends.ip(Ends::from_uplink(), far, ends.vip, 64).udp(1, 53).payload("12345678").build(), n, 0));
        outcome.verdict == Verdict::Await ? void() : expect_drop(outcome, DropReason::FragmentsFull);
    }
    EXPECT_EQ(waiting(), workers * limits::kFragmentsWaitingMax);
    // Fragments in order need no place.
    const uint16_t port = open();
    constexpr uint32_t kFreshId = 65'000;
    const Frames pieces =
        cut(ends.from_client().udp(5000, 53).payload(payload_of(248)).build(), kFreshId, 64);
    EXPECT_TRUE(
        same_frames(pass(pieces, kUp),
                    cut(to_endpoint().udp(port, 5353).payload(payload_of(248)).build(), kFreshId, 64)));
    gateway.take_released();
    gateway.advance_milliseconds(pipeline::kFragmentWaitMs);
    gateway.expire_fragments();
    EXPECT_EQ(gateway.take_released().size(), workers * limits::kFragmentsWaitingMax);
    EXPECT_EQ(waiting(), 0u);
}

// A flood of fragments that complete no datagram, from many sources: tables stay within their limits,
// fragmented datagrams in order pass, and flows without fragments lose no packet.
TEST_P(Fragments, FloodsLeaveOtherTrafficAlone_NAT007) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const uint16_t port = open();
    const Frame like = ends.from_client().udp(5000, 53).payload(payload_of(8)).build();
    const Frame small = ends.from_client().udp(5000, 53).payload("small").build();
    const Frame small_translated = to_endpoint().udp(port, 5353).payload("small").build();
    constexpr uint32_t kRounds = 200;
    for (uint32_t round = 0; round < kRounds; ++round) {
        Frames burst;
        for (uint32_t n = 0; n < 60; ++n) {
            Frame frame = fragment_like(like, static_cast<uint32_t>(random.next()), 8 * random.below(1000),
                                        random.one_in(2), payload_of(64));
            frame[family == IpFamily::V4 ? 26 + random.below(4) : 29 + random.below(8)] ^=
                static_cast<uint8_t>(1 + random.below(255));  // a source other than the client
            if (family == IpFamily::V4) {
                frame[24] = frame[25] = 0;
                const uint16_t sum = reference_checksum(ByteView(frame).subspan(14, 20));
                frame[24] = static_cast<uint8_t>(sum >> 8);
                frame[25] = static_cast<uint8_t>(sum);
            }
            burst.push_back(frame);
        }
        burst.push_back(small);
        const std::vector<Outcome> outcomes = gateway.send_burst(burst, kUp, any_queue());
        ASSERT_EQ(outcomes.back().verdict, Verdict::Transmit) << "round " << round;
        ASSERT_TRUE(same_frame(outcomes.back().frame, small_translated));
        for (size_t i = 0; i + 1 < outcomes.size(); ++i) {
            ASSERT_NE(outcomes[i].verdict, Verdict::None);
        }
        gateway.take_released();
        const Frame query = payload_of(1000, round);
        const uint32_t id = 1000 + round;
        ASSERT_TRUE(
            same_frames(pass(cut(ends.from_client().udp(5000, 53).payload(query).build(), id, 256), kUp),
                        cut(to_endpoint().udp(port, 5353).payload(query).build(), id, 256)))
            << "round " << round;
    }
    for (uint32_t w = 0; w < workers; ++w) {
        EXPECT_LE(gateway.worker(w).fragments.waiting(), limits::kFragmentsWaitingMax);
        EXPECT_LE(gateway.worker(w).fragments.datagrams(), limits::kFragmentedDatagramsMax);
    }
}

}  // namespace fragments_test
}  // namespace penstock::test
