// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/aging.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/aligned_memory.hpp"

namespace penstock::conn {
namespace aging_test {

constexpr TscRate kRate;  // one tick is one nanosecond
constexpr TscTime at_second(uint64_t n) {
    return TscTime{1} + kRate.seconds(n);
}

constexpr CoarseClock kClock(kRate);

class AgingTest : public testing::Test {
 protected:
    static constexpr uint32_t kCapacity = 1'000;

    ConnectionIndex open(uint32_t n, Protocol protocol, uint8_t state, TscTime when) {
        Connection connection;
        connection.forward = {.source = IpAddr::v4(Be32::from_host(0x0a000000 + n)),
                              .destination = IpAddr::v4(80, 11, 12, 10),
                              .destination_port = 80,
                              .protocol = protocol};
        connection.reverse = {.source = IpAddr::v4(172, 16, 0, 1),
                              .destination = IpAddr::v4(Be32::from_host(0x0b000000 + n)),
                              .source_port = 9376,
                              .protocol = protocol};
        connection.state = state;
        connection.service = {3};
        connection.opened_at = connection.last_seen = kClock.at(when);
        return table.insert(connection, table.hash(connection.forward), table.hash(connection.reverse)).index;
    }
    // One full sweep in ticks of the derived budget.
    uint32_t sweep(Aging& aging, TscTime now) {
        uint32_t gone = 0;
        for (uint32_t i = 0; i < kSweepPeriodMs / kAgingTickMs; ++i) {
            gone += aging.tick(
                table, kClock.at(now), own_limits, units_per_tick(kCapacity),
                [&](ConnectionIndex index) {
                    expired.push_back(index);
                    expired_clients.push_back(table.at(index).key(Direction::Forward).source);
                },
                [&](ConnectionIndex index) { resetting.push_back(index); },
                [&](ConnectionIndex index) {
                    doubted.push_back(index);
                    if (probes) {
                        table.set_state(index, probed(table.at(index).tcp_state()), kClock.at(now));
                    }
                    return probes;
                });
        }
        return gone;
    }

    // The victim of a new IPv4 connection; unset if there is none.
    ConnectionIndex only_victim(uint32_t budget) {
        const Victims victims = aging.find_victims(table, IpFamily::V4, budget);
        EXPECT_LE(victims.count, 1u);
        return victims.count == 0 ? ConnectionIndex{} : victims.index[0];
    }

    test::AlignedMemory memory{Table::memory_needed(kCapacity)};
    Table table = std::move(*Table::create(memory.span(), kCapacity, HashKey::random()));
    Aging aging{Limits(Timeouts{}, kRate)};
    IdleLimits own_limits;
    std::vector<ConnectionIndex> expired;
    std::vector<ConnectionIndex> resetting;
    std::vector<ConnectionIndex> doubted;
    bool probes = false;
    std::vector<IpAddr> expired_clients;
};

// Each state lasts for its whole limit and is removed one second (the resolution of last_seen) and one sweep
// later.
TEST_F(AgingTest, EachStateHasItsLimit_NAT008) {
    const auto tcp = [](TcpState state) { return static_cast<uint8_t>(state); };
    const auto datagram = [](DatagramState state) { return static_cast<uint8_t>(state); };
    const auto sctp = [](SctpState state) { return static_cast<uint8_t>(state); };
    const struct {
        const char* name;
        Protocol protocol;
        uint8_t state;
        uint64_t limit_s;
    } cases[] = {
        {"SYN sent", Protocol::Tcp, tcp(TcpState::SynSent), 60},
        {"SYN received", Protocol::Tcp, tcp(TcpState::SynReceived), 60},
        {"picked up", Protocol::Tcp, tcp(TcpState::PickedUp), 60},
        {"established", Protocol::Tcp, tcp(TcpState::Established), 86'400},
        {"client's FIN", Protocol::Tcp, tcp(TcpState::FinForward), 120},
        {"backend's FIN", Protocol::Tcp, tcp(TcpState::FinReverse), 120},
        {"both FINs", Protocol::Tcp, tcp(TcpState::TimeWait), 120},
        {"refused", Protocol::Tcp, tcp(TcpState::Closed), 10},
        {"after a RST of the client", Protocol::Tcp, tcp(TcpState::RstForward), 120},
        {"after a RST of the backend", Protocol::Tcp, tcp(TcpState::RstReverse), 120},
        {"under reset", Protocol::Tcp, tcp(TcpState::Resetting), 10},
        {"client's FIN, probed", Protocol::Tcp, tcp(TcpState::FinForwardProbed), 5},
        {"backend's FIN, probed again", Protocol::Tcp, tcp(TcpState::FinReverseProbedAgain), 5},
        {"client's RST, probed", Protocol::Tcp, tcp(TcpState::RstForwardProbed), 5},
        {"backend's RST, probed again", Protocol::Tcp, tcp(TcpState::RstReverseProbedAgain), 5},
        {"UDP one way", Protocol::Udp, datagram(DatagramState::OneWay), 30},
        {"UDP answered, and no datagram since", Protocol::Udp, datagram(DatagramState::TwoWay), 30},
        {"SCTP cookie wait", Protocol::Sctp, sctp(SctpState::CookieWait), 60},
        {"SCTP cookie echoed", Protocol::Sctp, sctp(SctpState::CookieEchoed), 60},
        {"SCTP established", Protocol::Sctp, sctp(SctpState::Established), 3'600},
        {"SCTP restarting", Protocol::Sctp, sctp(SctpState::Restarting), 3'600},
        {"SCTP backend restarting", Protocol::Sctp, sctp(SctpState::BackendRestarting), 3'600},
        {"SCTP shutdown", Protocol::Sctp, sctp(SctpState::Shutdown), 120},
        {"SCTP shutdown acked", Protocol::Sctp, sctp(SctpState::ShutdownAcked), 120},
        {"SCTP closed", Protocol::Sctp, sctp(SctpState::Closed), 10},
        {"SCTP aborting", Protocol::Sctp, sctp(SctpState::Aborting), 10},
    };
    for (const auto& c : cases) {
        ASSERT_TRUE(open(1, c.protocol, c.state, at_second(5)).is_set()) << c.name;
        // last_seen may be almost a second behind the last packet.
        EXPECT_EQ(sweep(aging, at_second(5 + c.limit_s) + kRate.milliseconds(999)), 0u)
            << c.name << " went too early";
        EXPECT_EQ(sweep(aging, at_second(5 + c.limit_s + 2)), 1u) << c.name << " stayed too long";
        EXPECT_EQ(table.size(), 0u);
    }
}

// As in Linux (nf_conntrack_proto_udp): a flow that still has datagrams after two seconds lasts four times as
// long.
TEST_F(AgingTest, AnAnsweredUdpFlowThatLastsLivesLonger_NAT008) {
    for (const uint64_t lasts_s : {0, 1, 3, 1'000}) {
        const ConnectionIndex index =
            open(1, Protocol::Udp, static_cast<uint8_t>(DatagramState::TwoWay), at_second(5));
        table.touch(index, kClock.at(at_second(5 + lasts_s)));
        const uint64_t limit_s = lasts_s < 2 ? 30 : 120;
        EXPECT_EQ(sweep(aging, at_second(5 + lasts_s + limit_s) + kRate.milliseconds(500)), 0u)
            << lasts_s << " s: too early";
        EXPECT_EQ(sweep(aging, at_second(5 + lasts_s + limit_s + 2)), 1u) << lasts_s << " s: too late";
    }
    const ConnectionIndex unanswered =
        open(1, Protocol::Udp, static_cast<uint8_t>(DatagramState::OneWay), at_second(5));
    table.touch(unanswered, kClock.at(at_second(20)));
    EXPECT_EQ(sweep(aging, at_second(20 + 32)), 1u);
}

TEST_F(AgingTest, TrafficAndANewStateRestartTheIdleTime) {
    const ConnectionIndex index =
        open(1, Protocol::Tcp, static_cast<uint8_t>(TcpState::SynSent), at_second(0));
    table.set_state(index, TcpState::Established, kClock.at(at_second(50)));
    EXPECT_EQ(sweep(aging, at_second(80'000)), 0u);
    table.touch(index, kClock.at(at_second(80'000)));
    EXPECT_EQ(sweep(aging, at_second(160'000)), 0u);
    table.set_state(index, TcpState::Closed, kClock.at(at_second(160'000)));
    EXPECT_EQ(sweep(aging, at_second(160'009)), 0u);
    EXPECT_EQ(sweep(aging, at_second(160'012)), 1u);
}

// A connection in which a FIN or a RST has passed is probed twice before its limit, once for each probe
// state; no other connection is probed.
TEST_F(AgingTest, WhatMayHaveEndedInAnothersNameIsProbedTwice_NAT006) {
    probes = true;
    for (const TcpState state :
         {TcpState::FinForward, TcpState::FinReverse, TcpState::RstForward, TcpState::RstReverse}) {
        doubted.clear();
        open(1, Protocol::Tcp, static_cast<uint8_t>(state), at_second(0));
        EXPECT_EQ(sweep(aging, at_second(105)), 0u);
        EXPECT_EQ(doubted.size(), 0u) << to_string(state);
        EXPECT_EQ(sweep(aging, at_second(112)), 0u);
        EXPECT_EQ(doubted.size(), 1u) << to_string(state) << ": however often it is visited";
        EXPECT_EQ(sweep(aging, at_second(119)), 0u);
        EXPECT_EQ(doubted.size(), 2u) << to_string(state);
        EXPECT_EQ(sweep(aging, at_second(126)), 1u) << to_string(state);
        EXPECT_EQ(doubted.size(), 2u) << to_string(state);
    }
    doubted.clear();
    for (const TcpState state :
         {TcpState::SynReceived, TcpState::Established, TcpState::TimeWait, TcpState::Closed}) {
        open(1, Protocol::Tcp, static_cast<uint8_t>(state), at_second(0));
        sweep(aging, at_second(100'000));
    }
    EXPECT_TRUE(doubted.empty());
}

TEST_F(AgingTest, ATickVisitsNoMoreThanItsBudget) {
    for (uint32_t i = 0; i < kCapacity; ++i) {
        ASSERT_TRUE(open(i, Protocol::Udp, 0, at_second(0)).is_set());
    }
    const auto forget = [](ConnectionIndex) {};
    const auto no_probe = [](ConnectionIndex) { return false; };
    EXPECT_EQ(aging.tick(table, kClock.at(at_second(100)), own_limits, 64, forget, forget, no_probe), 64u);
    EXPECT_EQ(table.size(), kCapacity - 64);
    EXPECT_EQ(aging.tick(table, kClock.at(at_second(100)), own_limits, 0, forget, forget, no_probe), 0u);
    EXPECT_EQ(sweep(aging, at_second(100)), kCapacity - 64);
}

// ANN-03: a Service's timeout applies to its existing flows, for longer and shorter values, and only to
// established and two-way flows. Flows of other Services keep the default.
TEST_F(AgingTest, AServicesOwnLimitReplacesThatOfLongLivedStates_NAT008) {
    const auto tcp = [](TcpState state) { return static_cast<uint8_t>(state); };
    const auto datagram = [](DatagramState state) { return static_cast<uint8_t>(state); };
    const auto sctp = [](SctpState state) { return static_cast<uint8_t>(state); };
    constexpr uint32_t kShorter = 20, kLonger = 200'000;
    const struct {
        const char* name;
        Protocol protocol;
        uint8_t state;
        bool has_own;
        uint64_t default_s;
    } cases[] = {
        {"SYN sent", Protocol::Tcp, tcp(TcpState::SynSent), false, 60},
        {"SYN received", Protocol::Tcp, tcp(TcpState::SynReceived), false, 60},
        {"picked up", Protocol::Tcp, tcp(TcpState::PickedUp), false, 60},
        {"established", Protocol::Tcp, tcp(TcpState::Established), true, 86'400},
        {"client's FIN", Protocol::Tcp, tcp(TcpState::FinForward), false, 120},
        {"backend's FIN", Protocol::Tcp, tcp(TcpState::FinReverse), false, 120},
        {"both FINs", Protocol::Tcp, tcp(TcpState::TimeWait), false, 120},
        {"refused", Protocol::Tcp, tcp(TcpState::Closed), false, 10},
        {"after a RST of the client", Protocol::Tcp, tcp(TcpState::RstForward), false, 120},
        {"after a RST of the backend", Protocol::Tcp, tcp(TcpState::RstReverse), false, 120},
        {"under reset", Protocol::Tcp, tcp(TcpState::Resetting), false, 10},
        {"UDP one way", Protocol::Udp, datagram(DatagramState::OneWay), false, 30},
        {"UDP answered, and no datagram since", Protocol::Udp, datagram(DatagramState::TwoWay), true, 30},
        {"SCTP cookie wait", Protocol::Sctp, sctp(SctpState::CookieWait), false, 60},
        {"SCTP established", Protocol::Sctp, sctp(SctpState::Established), true, 3'600},
        {"SCTP restarting", Protocol::Sctp, sctp(SctpState::Restarting), true, 3'600},
        {"SCTP backend restarting", Protocol::Sctp, sctp(SctpState::BackendRestarting), true, 3'600},
        {"SCTP shutdown", Protocol::Sctp, sctp(SctpState::Shutdown), false, 120},
    };
    for (const uint32_t own : {kShorter, kLonger}) {
        for (const auto& c : cases) {
            const uint64_t limit_s = c.has_own ? own : c.default_s;
            own_limits.seconds = {};
            ASSERT_TRUE(open(1, c.protocol, c.state, at_second(5)).is_set()) << c.name;
            own_limits.seconds = {0, 0, 0, own};  // opened before the Service's timeout was set
            EXPECT_EQ(sweep(aging, at_second(5 + limit_s) + kRate.milliseconds(999)), 0u)
                << c.name << " went too early";
            EXPECT_EQ(sweep(aging, at_second(5 + limit_s + 2)), 1u) << c.name << " stayed too long";
        }
    }
    own_limits.seconds = {0, 0, kShorter, 0, kShorter};
    ASSERT_TRUE(open(1, Protocol::Udp, datagram(DatagramState::TwoWay), at_second(5)).is_set());
    EXPECT_EQ(sweep(aging, at_second(5 + 30)), 0u) << "of other Services";
}

// Two sweeps visit a connection in Resetting before it ends, and no other connection is reported as
// resetting.
TEST_F(AgingTest, WhatIsUnderResetIsToldApart) {
    const ConnectionIndex index =
        open(1, Protocol::Tcp, static_cast<uint8_t>(TcpState::Resetting), at_second(5));
    open(2, Protocol::Tcp, static_cast<uint8_t>(TcpState::Closed), at_second(5));
    open(3, Protocol::Udp, 1, at_second(5));
    const ConnectionIndex association =
        open(4, Protocol::Sctp, static_cast<uint8_t>(SctpState::Aborting), at_second(5));
    open(5, Protocol::Sctp, static_cast<uint8_t>(SctpState::Closed), at_second(5));
    sweep(aging, at_second(7));
    EXPECT_EQ(std::set<ConnectionIndex>(resetting.begin(), resetting.end()),
              (std::set<ConnectionIndex>{index, association}));
    resetting.clear();
    sweep(aging, at_second(20));
    EXPECT_TRUE(resetting.empty()) << "it has ended";
}

TEST_F(AgingTest, ExpiredIsToldWhatGoesWhileItIsStillThere) {
    const ConnectionIndex index = open(7, Protocol::Udp, 0, at_second(0));
    ASSERT_EQ(sweep(aging, at_second(40)), 1u);
    EXPECT_EQ(expired, std::vector{index});
    EXPECT_EQ(expired_clients, std::vector{IpAddr::v4(10, 0, 0, 7)});
}

TEST_F(AgingTest, TheOldestOneSidedConnectionIsTheVictim) {
    open(1, Protocol::Tcp, static_cast<uint8_t>(TcpState::Established), at_second(1));
    open(2, Protocol::Udp, static_cast<uint8_t>(DatagramState::OneWay), at_second(30));
    const ConnectionIndex oldest =
        open(3, Protocol::Tcp, static_cast<uint8_t>(TcpState::SynSent), at_second(20));
    open(4, Protocol::Tcp, static_cast<uint8_t>(TcpState::SynReceived), at_second(40));
    open(5, Protocol::Udp, static_cast<uint8_t>(DatagramState::TwoWay), at_second(2));
    EXPECT_EQ(only_victim(64), oldest);
    // Retransmitted SYNs do not protect it.
    table.touch(oldest, kClock.at(at_second(100)));
    EXPECT_EQ(only_victim(64), oldest);
    const ConnectionIndex picked_up =
        open(6, Protocol::Tcp, static_cast<uint8_t>(TcpState::PickedUp), at_second(10));
    EXPECT_EQ(only_victim(64), picked_up);
}

TEST_F(AgingTest, EstablishedConnectionsAreNeverVictims) {
    open(1, Protocol::Tcp, static_cast<uint8_t>(TcpState::Established), at_second(1));
    const ConnectionIndex lasting =
        open(2, Protocol::Udp, static_cast<uint8_t>(DatagramState::TwoWay), at_second(1));
    table.touch(lasting, kClock.at(at_second(3)));
    EXPECT_FALSE(only_victim(kCapacity).is_set());
}

// A UDP query can be spoofed and is answered nevertheless. A flow that had no datagrams after its first two
// seconds must therefore be evicted.
TEST_F(AgingTest, AnAnsweredQuestionIsAVictimUnlessItLasts_NAT008) {
    const auto answered = static_cast<uint8_t>(DatagramState::TwoWay);
    open(1, Protocol::Tcp, static_cast<uint8_t>(TcpState::Established), at_second(1));
    const ConnectionIndex first = open(3, Protocol::Udp, answered, at_second(10));
    const ConnectionIndex second = open(4, Protocol::Udp, answered, at_second(20));
    EXPECT_EQ(only_victim(64), first);
    table.touch(first, kClock.at(at_second(11)));
    EXPECT_EQ(only_victim(64), first) << "asked again at once";
    table.touch(first, kClock.at(at_second(12)));
    EXPECT_EQ(only_victim(64), second) << "the other one lasts";
    const ConnectionIndex finished =
        open(5, Protocol::Tcp, static_cast<uint8_t>(TcpState::TimeWait), at_second(50));
    EXPECT_EQ(only_victim(64), finished);
}

// Of the Surplus connections the largest holder's is evicted, and only if there is no other victim.
TEST_F(AgingTest, TheLargestHoldersOldestSurplusIsTheLastVictim) {
    const auto lasting = static_cast<uint8_t>(DatagramState::TwoWay);
    for (uint32_t n = 1; n <= 6; ++n) {
        const ConnectionIndex index = open(n, Protocol::Udp, lasting, at_second(n));
        table.touch(index, kClock.at(at_second(20 + n)));
    }
    // Clients 3 to 6 belong to two holders; the connections of 1 and 2 are kept.
    const Appraiser appraiser{[](const void*, const Entry& entry) noexcept {
                                  const uint32_t client = entry.v4_source(Direction::Forward).host() & 0xff;
                                  const bool has_much = client >= 3 && worth_of(entry) == Worth::Keep;
                                  return has_much ? Appraisal{Worth::Surplus, client >= 5 ? 9U : 8U}
                                                  : Appraisal{worth_of(entry), 0};
                              },
                              nullptr};
    const auto victim = [&] {
        const Victims victims = aging.find_victims(table, IpFamily::V4, 64, appraiser);
        return victims.count == 1 ? table.at(victims.index[0]).v4_source(Direction::Forward).host() & 0xff
                                  : 0;
    };
    EXPECT_EQ(victim(), 5u);
    EXPECT_FALSE(only_victim(64).is_set()) << "no other caller's";
    const ConnectionIndex brief = open(7, Protocol::Udp, lasting, at_second(50));
    EXPECT_EQ(victim(), 7u);
    table.erase(brief);
    for (const uint32_t expected : {5U, 6U, 3U, 4U, 0U}) {
        const Victims victims = aging.find_victims(table, IpFamily::V4, 64, appraiser);
        EXPECT_EQ(victims.count, expected == 0 ? 0u : 1u);
        if (victims.count == 1) {
            EXPECT_EQ(table.at(victims.index[0]).v4_source(Direction::Forward).host() & 0xff, expected);
            table.erase(victims.index[0]);
        }
    }
}

TEST_F(AgingTest, WithoutAOneSidedConnectionALongFinishedOneIsTheVictim) {
    open(1, Protocol::Tcp, static_cast<uint8_t>(TcpState::FinForward), at_second(1));
    open(2, Protocol::Tcp, static_cast<uint8_t>(TcpState::TimeWait), at_second(30));
    const ConnectionIndex finished =
        open(3, Protocol::Tcp, static_cast<uint8_t>(TcpState::TimeWait), at_second(20));
    EXPECT_EQ(only_victim(64), finished);
    const ConnectionIndex half_open =
        open(4, Protocol::Tcp, static_cast<uint8_t>(TcpState::SynSent), at_second(40));
    EXPECT_EQ(only_victim(64), half_open);
}

TEST_F(AgingTest, AFinishedAssociationIsAVictimLikeAFinishedConnection_SCTP002) {
    for (const SctpState state : {SctpState::Closed, SctpState::Aborting}) {
        const ConnectionIndex lives =
            open(1, Protocol::Sctp, static_cast<uint8_t>(SctpState::Established), at_second(1));
        const ConnectionIndex finished = open(2, Protocol::Sctp, static_cast<uint8_t>(state), at_second(20));
        EXPECT_EQ(only_victim(64), finished);
        const ConnectionIndex half_open =
            open(3, Protocol::Sctp, static_cast<uint8_t>(SctpState::CookieWait), at_second(30));
        EXPECT_EQ(only_victim(64), half_open);
        for (const ConnectionIndex index : {lives, finished, half_open}) {
            table.erase(index);
        }
    }
}

// An attacker that spoofs a client's RSTs also spoofs its SYNs and ACKs. The resulting entries must not
// survive in a full table.
TEST_F(AgingTest, AfterARstAConnectionIsAVictimLikeAFinishedOne) {
    for (const TcpState state :
         {TcpState::RstForward, TcpState::RstReverse, TcpState::Closed, TcpState::RstForwardProbed,
          TcpState::RstReverseProbed, TcpState::RstForwardProbedAgain, TcpState::RstReverseProbedAgain}) {
        open(1, Protocol::Tcp, static_cast<uint8_t>(TcpState::Established), at_second(1));
        open(2, Protocol::Tcp, static_cast<uint8_t>(TcpState::TimeWait), at_second(30));
        const ConnectionIndex reset = open(3, Protocol::Tcp, static_cast<uint8_t>(state), at_second(20));
        EXPECT_EQ(only_victim(64), reset);
        table.touch(reset, kClock.at(at_second(40)));
        EXPECT_NE(only_victim(64), reset) << "it may be alive";
        table.erase(reset);
    }
}

TEST_F(AgingTest, TheSearchForAVictimIsBoundedAndGoesOn) {
    for (uint32_t i = 0; i < 100; ++i) {
        open(i, Protocol::Tcp, static_cast<uint8_t>(TcpState::Established), at_second(1));
    }
    const ConnectionIndex behind =
        open(100, Protocol::Tcp, static_cast<uint8_t>(TcpState::SynSent), at_second(1));
    EXPECT_FALSE(only_victim(64).is_set());
    EXPECT_EQ(only_victim(64), behind);
}

// An IPv6 connection needs both units of a pair, so the oldest pair with only half-open connections is
// evicted. A pair with an established connection stays.
TEST_F(AgingTest, ForIPv6AWholePairIsGivenUp) {
    const auto half_open = static_cast<uint8_t>(TcpState::SynSent);
    open(1, Protocol::Tcp, half_open, at_second(1));
    open(2, Protocol::Tcp, static_cast<uint8_t>(TcpState::Established), at_second(1));
    open(3, Protocol::Tcp, half_open, at_second(2));
    open(4, Protocol::Tcp, half_open, at_second(40));  // a pair is as old as its younger half
    const ConnectionIndex first = open(5, Protocol::Tcp, half_open, at_second(20));
    const ConnectionIndex second =
        open(6, Protocol::Udp, static_cast<uint8_t>(DatagramState::OneWay), at_second(30));
    const Victims victims = aging.find_victims(table, IpFamily::V6, 64);
    ASSERT_EQ(victims.count, 2u);
    EXPECT_EQ(victims.index, (std::array{first, second}));
}

TEST(Aging, TheBudgetSweepsAnyTableInItsPeriod) {
    for (const uint32_t capacity : {1u, 4'999u, 5'000u, 5'001u, 262'144u, 1u << 20, 1u << 28}) {
        EXPECT_GE(uint64_t{units_per_tick(capacity)} * (kSweepPeriodMs / kAgingTickMs), capacity);
    }
}

}  // namespace aging_test
}  // namespace penstock::conn
