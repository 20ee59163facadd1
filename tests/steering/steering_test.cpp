// SPDX-License-Identifier: Apache-2.0
// Replies reach their owner on every kind of NIC: real NicPorts and workers on software NICs, 100,000
// full-NAT connections per configuration, both families, TCP and UDP. If the plan predicts queues, no reply
// is handed over. Otherwise each reply still arrives.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <tuple>

#include "tests/steering/bed.hpp"
#include "tests/steering/traffic.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/sanitizers.hpp"

namespace penstock::test {
namespace steering_test {

// A quarter of each kind. Sanitizers slow down every frame tenfold, and fewer frames are sufficient for their
// findings.
constexpr uint32_t kConnections = kUnderAddressSanitizer || kUnderThreadSanitizer ? 8'000 : 100'000;

std::unique_ptr<SteeringBed> start_bed(uint32_t workers, const std::string& nic) {
    auto bed = SteeringBed::start({.workers = workers, .nic = nic, .services = steering_services()});
    EXPECT_TRUE(bed.has_value()) << bed.error().what;
    return bed ? std::move(*bed) : nullptr;
}

void pass_all(SteeringBed& bed) {
    uint32_t opened = 0;
    for (const TrafficKind& kind : kTrafficKinds) {
        const TrafficResult result = open_connections(bed, kind, opened, kConnections / kTrafficKinds.size());
        ASSERT_EQ(result.first_fault, "") << bed.drops_by_name();
        opened += result.opened;
    }
    EXPECT_EQ(opened, kConnections);
    EXPECT_EQ(bed.connections(), kConnections) << "each has one owner";
    EXPECT_EQ(bed.drops(), 0u) << bed.drops_by_name();
    EXPECT_EQ(bed.count(stats::Counter::HandedOff), bed.count(stats::Counter::HandedIn));
}

// All packets received on a port arrived at their owner, and no reply was misplaced.
void all_came_home(SteeringBed& bed, NicPortId port, uint64_t received) {
    const worker::PortTotals totals = bed.workers().inspect().port(port);
    EXPECT_EQ(totals.received, received);
    EXPECT_EQ(totals.handed_off, 0u);
    EXPECT_EQ(totals.replies_misplaced, 0u);
}

struct Nic {
    const char* name;
    const char* arguments;
};
void PrintTo(const Nic& nic, std::ostream* out) {
    *out << nic.name << " (" << nic.arguments << ")";
}
using Case = std::tuple<Nic, uint32_t>;
std::string name_of(const testing::TestParamInfo<Case>& info) {
    return std::get<0>(info.param).name + std::to_string(std::get<1>(info.param));
}

// A NIC that does not help, or hinders: it supports no prediction and chooses queues as unfavourably as
// possible.
class Hostile : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Steering, Hostile,
    testing::Combine(testing::Values(Nic{"OneQueue", "rss=none,flow_rules=0,spread=zero"},
                                     Nic{"AnyQueue", "rss=none,flow_rules=0,spread=random"},
                                     Nic{"ChangingQueue", "rss=none,flow_rules=0,spread=wander"},
                                     Nic{"AddressesOnly", "rss=ipv4+ipv6,flow_rules=0"},
                                     Nic{"HiddenKey",
                                         "key=hidden,reta_access=hidden,loopback=0,flow_rules=0"}),
                     testing::Values(2u, 4u)),
    name_of);
INSTANTIATE_TEST_SUITE_P(OneWorker, Hostile,
                         testing::Combine(testing::Values(Nic{"AnyQueue",
                                                              "rss=none,flow_rules=0,spread=random"}),
                                          testing::Values(1u)),
                         name_of);

TEST_P(Hostile, EachConnectionWorks) {
    const auto& [nic, workers] = GetParam();
    const auto bed = start_bed(workers, nic.arguments);
    ASSERT_NE(bed, nullptr);
    pass_all(*bed);
    if (workers > 1) {
        EXPECT_GT(bed->count(stats::Counter::HandedOff), kConnections / 4)
            << "by luck alone, some replies are at home";
    }
}

// Predictable RSS, for each kind of access that drivers provide: no packet is handed over.
class Predictable : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Steering, Predictable,
    testing::Combine(testing::Values(Nic{"KeySet", ""}, Nic{"SmallTable", "reta=64"},
                                     Nic{"LongKeyLargeTable", "key_bytes=52,reta=512"},
                                     Nic{"FixedKeyFixedTable", "key=fixed,reta_access=fixed"},
                                     Nic{"KeyIgnored", "key=ignored,reta_access=ignored"},
                                     Nic{"NothingCanBeTested", "loopback=0,rss_hash=0"}),
                     testing::Values(2u, 4u)),
    name_of);
INSTANTIATE_TEST_SUITE_P(OneWorker, Predictable,
                         testing::Combine(testing::Values(Nic{"KeySet", ""}), testing::Values(1u)), name_of);

TEST_P(Predictable, EachReplyIsAtItsOwner) {
    const auto& [nic, workers] = GetParam();
    const auto bed = start_bed(workers, nic.arguments);
    ASSERT_NE(bed, nullptr);
    for (const NicPortId id : {kUp, kCluster}) {
        const drivers::NicPortFacts& facts = bed->port(id).facts();
        EXPECT_EQ(facts.check_failed, "");
        EXPECT_TRUE(facts.steering.flow_stays_on_queue);
        if (workers > 1) {
            EXPECT_EQ(facts.steering.steering, drivers::Steering::PredictableRss) << facts.steering.reason;
        }
        EXPECT_FALSE(bed->nic(id).is_looped_back());
    }
    pass_all(*bed);
    EXPECT_EQ(bed->count(stats::Counter::HandedOff), 0u);
    all_came_home(*bed, kUp, uint64_t{kConnections} * 2);
    all_came_home(*bed, kCluster, kConnections);
    const worker::Inspector inspect = bed->workers().inspect();
    for (uint8_t w = 0; w < workers; ++w) {
        EXPECT_GT(inspect.worker({w}).connections, kConnections / workers * 9 / 10) << "of worker " << int{w};
    }
}

// No RSS, or RSS over addresses only, with rules: each block of SNAT ports is steered to its owner's queue.
// Clients' first packets may be handed over.
class Ruled : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Steering, Ruled,
    testing::Combine(
        testing::Values(Nic{"AnyQueue", "rss=none,spread=random"},
                        Nic{"ChangingQueue", "rss=none,spread=wander"}, Nic{"AddressesOnly", "rss=ipv4+ipv6"},
                        Nic{"WithoutCounters", "rss=none,spread=random,flow_actions=queue+drop"}),
        testing::Values(2u, 4u)),
    name_of);

TEST_P(Ruled, EachReplyIsAtItsOwner) {
    const auto& [nic, workers] = GetParam();
    const auto bed = start_bed(workers, nic.arguments);
    ASSERT_NE(bed, nullptr);
    for (const NicPortId id : {kUp, kCluster}) {
        const drivers::SteeringPlan& steering = bed->port(id).facts().steering;
        EXPECT_EQ(steering.steering, drivers::Steering::FlowRules) << steering.reason;
        EXPECT_FALSE(steering.reply_hash);
    }
    for (const gateway::FlowView& flow : bed->flows().list()) {
        EXPECT_NE(flow.state, gateway::FlowView::State::Refused) << flow.match << ": " << flow.reason;
    }
    // For each worker: TCP and UDP to the port's SNAT address of either family.
    EXPECT_EQ(bed->nic(kCluster).flow_rules(), 4u * workers);
    pass_all(*bed);
    all_came_home(*bed, kCluster, kConnections);
}

// Packets outside of the hash are steered by rules, if there are any.
TEST(PartlyPredictable, RulesBringWhatIsNotHashed) {
    const auto bed = start_bed(2, "rss=ipv4+tcp4+udp4+ipv6+tcp6");
    ASSERT_NE(bed, nullptr);
    EXPECT_EQ(bed->port(kCluster).facts().steering.steering, drivers::Steering::PredictableRss);
    EXPECT_EQ(bed->nic(kCluster).flow_rules(), 2u) << "UDP over IPv6, of two workers";
    pass_all(*bed);
    all_came_home(*bed, kCluster, kConnections);
}

// If the hash omits the ports of one packet type, packets of that type are handed over, and no others.
// An address-only hash leads the packets of one client to one queue, and the replies of each of the four
// endpoints to one queue. With one RSS key in 16, all of these are the same queue. Each bed has a new key, so
// 20 beds without a handoff are 20 such keys in a row.
TEST(PartlyPredictable, OnlyWhatIsNotHashedIsHandedOver) {
    bool unhashed_was_handed_over = false;
    for (unsigned beds = 0; beds < 20 && !unhashed_was_handed_over; ++beds) {
        const auto bed = start_bed(2, "rss=ipv4+tcp4+udp4+ipv6+tcp6,flow_rules=0");
        ASSERT_NE(bed, nullptr);
        EXPECT_EQ(bed->port(kCluster).facts().steering.steering, drivers::Steering::PredictableRss);
        uint32_t first = 0;
        for (const TrafficKind& kind : kTrafficKinds) {
            const bool is_hashed = kind.family == IpFamily::V4 || kind.protocol == Protocol::Tcp;
            const uint64_t before = bed->count(stats::Counter::HandedOff);
            const TrafficResult result = open_connections(*bed, kind, first, kConnections / 10);
            ASSERT_EQ(result.first_fault, "") << bed->drops_by_name();
            const bool was_handed_over = bed->count(stats::Counter::HandedOff) > before;
            EXPECT_FALSE(is_hashed && was_handed_over) << to_string(kind);
            unhashed_was_handed_over = unhashed_was_handed_over || was_handed_over;
            first += result.opened;
        }
    }
    EXPECT_TRUE(unhashed_was_handed_over);
}

// A NIC that reports wrong RSS. If it can be tested, the error is detected and predictable RSS is not used.
class Liar : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Steering, Liar,
                         testing::Combine(testing::Values(Nic{"AnotherKey", "flow_rules=0,spread=lies"},
                                                          Nic{"AnyQueue", "flow_rules=0,spread=random"},
                                                          Nic{"ChangingQueue", "flow_rules=0,spread=wander"},
                                                          Nic{"OneQueue", "flow_rules=0,spread=zero"}),
                                          testing::Values(2u, 4u)),
                         name_of);

TEST_P(Liar, IsFoundOutAndEachConnectionWorks) {
    const auto& [nic, workers] = GetParam();
    const auto bed = start_bed(workers, nic.arguments);
    ASSERT_NE(bed, nullptr);
    for (const NicPortId id : {kUp, kCluster}) {
        const drivers::NicPortFacts& facts = bed->port(id).facts();
        EXPECT_NE(facts.check_failed, "");
        EXPECT_EQ(facts.steering.steering, drivers::Steering::Handoff);
        EXPECT_FALSE(facts.steering.reply_hash);
        EXPECT_NE(facts.steering.reason.find(facts.check_failed), std::string::npos) << facts.steering.reason;
    }
    pass_all(*bed);
}

// A NIC that cannot be tested is trusted, and handoff corrects the result.
TEST(LiarUntested, EachConnectionWorks) {
    const auto bed = start_bed(2, "flow_rules=0,spread=lies,loopback=0");
    ASSERT_NE(bed, nullptr);
    EXPECT_EQ(bed->port(kCluster).facts().steering.steering, drivers::Steering::PredictableRss);
    pass_all(*bed);
    const worker::PortTotals totals = bed->workers().inspect().port(kCluster);
    EXPECT_GT(totals.replies_misplaced, kConnections / 4) << "it shows";
    EXPECT_EQ(totals.replies_misplaced, totals.handed_off);
    EXPECT_EQ(totals.handoff_lost, 0u);
}

// All fragments of one datagram reach one worker, from any receiving worker: the owner of the SNAT port in
// the first one.
TEST(Fragments, OfOneDatagramMeetAtOneWorker) {
    const auto bed = start_bed(2, "rss=none,flow_rules=0,spread=random");
    ASSERT_NE(bed, nullptr);
    const worker::Inspector inspect = bed->workers().inspect();
    const auto punted = [&] {
        return std::array{inspect.counter({0}, stats::Counter::Punted),
                          inspect.counter({1}, stats::Counter::Punted)};
    };
    std::array<uint64_t, 2> whole{};
    for (uint16_t id = 1; id <= 40; ++id) {
        const auto before = punted();
        for (uint16_t offset = 0; offset < 3; ++offset) {
            PacketBuilder fragment =
                eth().to_mac(kUpMac.to_string()).ipv4("10.80.1.2", kUpAddress.to_string()).id(id);
            offset == 0 ? fragment.udp(5000, static_cast<uint16_t>(5000 + 64 * id))
                        : fragment.ip_protocol(17).fragment_offset(offset).payload(std::vector<uint8_t>(8));
            if (offset != 2) {
                fragment.more_fragments();
            }
            ASSERT_EQ(bed->wire(kUp).put(fragment.build()).fate, Received::Fate::Queued);
        }
        auto after = punted();
        for (const Patience patience; after[0] + after[1] < before[0] + before[1] + 3 && patience.wait();) {
            after = punted();
        }
        ASSERT_EQ(after[0] + after[1], before[0] + before[1] + 3) << bed->drops_by_name();
        ASSERT_TRUE(after[0] == before[0] || after[1] == before[1]) << "datagram " << id << " was torn apart";
        ++whole[after[0] == before[0] ? 1 : 0];
    }
    EXPECT_GT(whole[0], 0u);
    EXPECT_GT(whole[1], 0u);
}

// An ICMP error has no ports of its own. The quoted packet determines the flow.
TEST(IcmpErrors, ReachTheOwnerOfTheFlowThatTheyQuote) {
    const auto bed = start_bed(2, "rss=none,flow_rules=0,spread=random");
    ASSERT_NE(bed, nullptr);
    ASSERT_EQ(open_connections(*bed, kTrafficKinds[0], 0, 40).first_fault, "");
    const worker::Inspector inspect = bed->workers().inspect();
    std::vector<worker::ConnectionView> opened;
    inspect.for_each_connection([&](const worker::ConnectionView& view) {
        opened.push_back(view);
        return true;
    });
    ASSERT_EQ(opened.size(), 40u);
    for (const worker::ConnectionView& view : opened) {
        const packet::FlowKey& reply = view.reverse;
        std::vector<uint8_t> quoted = eth()
                                          .ipv4(reply.destination.to_string(), reply.source.to_string())
                                          .tcp(reply.destination_port, reply.source_port, "A")
                                          .build();
        quoted.erase(quoted.begin(), quoted.begin() + 14);
        const std::vector<uint8_t> error = eth()
                                               .to_mac(kClusterMac.to_string())
                                               .ipv4(reply.source.to_string(), reply.destination.to_string())
                                               .icmp(3, 1)
                                               .payload(quoted)
                                               .build();
        const uint64_t before = inspect.counter(view.worker, stats::Counter::IcmpErrorsTranslated);
        ASSERT_EQ(bed->wire(kCluster).put(error).fate, Received::Fate::Queued);
        for (const Patience patience;
             inspect.counter(view.worker, stats::Counter::IcmpErrorsTranslated) == before &&
             patience.wait();) {
        }
        EXPECT_EQ(inspect.counter(view.worker, stats::Counter::IcmpErrorsTranslated), before + 1)
            << bed->drops_by_name();
    }
}

}  // namespace steering_test
}  // namespace penstock::test
