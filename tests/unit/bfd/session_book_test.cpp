// SPDX-License-Identifier: Apache-2.0
#include "control/bfd/session_book.hpp"

#include <gtest/gtest.h>

#include <string>

#include "dataplane/base/limits.hpp"

namespace penstock::bfd {
namespace session_book_test {

using Clock = SessionBook::Clock;

class SessionBookTest : public ::testing::Test {
 protected:
    static SessionRequest request(uint32_t discriminator, const char* peer = "192.0.2.2") {
        return {.discriminator = discriminator,
                .local = *IpAddr::parse("192.0.2.1"),
                .peer = *IpAddr::parse(peer),
                .min_tx_us = 50'000,
                .min_rx_us = 60'000,
                .ttl_min = 255,
                .detect_multiplier = 3,
                .interface = "up0"};
    }
    std::vector<Order> put(const SessionRequest& request) { return book.request(request, twins, now); }
    static Status status_of(State state, uint32_t remote = 0) {
        Status status;
        status.state = state;
        status.remote_discriminator = remote;
        return status;
    }
    [[nodiscard]] std::string refusal(uint32_t discriminator) const {
        return book.session(discriminator)->refusal;
    }

    const std::vector<Twin> twins{
        {"up0", NicPortId{0}, {{*IpAddr::parse("192.0.2.1"), 24}, {*IpAddr::parse("2001:db8::1"), 64}}},
        {"down0", NicPortId{1}, {{*IpAddr::parse("198.51.100.1"), 24}}}};
    Clock::time_point now{};
    SessionBook book;
};

TEST_F(SessionBookTest, OrdersASessionOnThePortOfItsInterface) {
    const auto orders = put(request(7));
    ASSERT_EQ(orders.size(), 1U);
    EXPECT_EQ(orders[0].kind, Order::Kind::Put);
    EXPECT_EQ(orders[0].terms, (Terms{.discriminator = 7,
                                      .local = *IpAddr::parse("192.0.2.1"),
                                      .peer = *IpAddr::parse("192.0.2.2"),
                                      .egress = NicPortId{0},
                                      .ttl_min = 255,
                                      .detect_multiplier = 3,
                                      .desired_min_tx_us = 50'000,
                                      .required_min_rx_us = 60'000}));
    EXPECT_EQ(book.session(7)->twin, "up0");
}

TEST_F(SessionBookTest, FindsWhatTheRequestLeavesOut) {
    SessionRequest bare = request(7, "198.51.100.9");
    bare.local = *IpAddr::parse("0.0.0.0");
    bare.interface = "";
    const auto orders = put(bare);
    ASSERT_EQ(orders.size(), 1U);
    EXPECT_EQ(orders[0].terms.egress, NicPortId{1}) << "the subnet of its peer";
    EXPECT_EQ(orders[0].terms.local, *IpAddr::parse("198.51.100.1"));
}

TEST_F(SessionBookTest, AMultihopSessionHasNoPort) {
    SessionRequest multihop = request(7, "203.0.113.9");
    multihop.is_multihop = true;
    multihop.ttl_min = 250;
    multihop.interface = "";
    const auto orders = put(multihop);
    ASSERT_EQ(orders.size(), 1U);
    EXPECT_TRUE(orders[0].terms.is_multihop());
    EXPECT_EQ(orders[0].terms.ttl_min, 250);
}

TEST_F(SessionBookTest, ASingleHopPacketHasTheWholeTtl_RFC5881) {
    SessionRequest low = request(7);
    low.ttl_min = 1;
    EXPECT_EQ(put(low).at(0).terms.ttl_min, 255);
}

TEST_F(SessionBookTest, NamesWhyASessionIsNotRun) {
    SessionRequest other = request(1);
    other.interface = "eth7";
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(1), "interface eth7 is no twin");
    other = request(2, "203.0.113.9");
    other.interface = "";
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(2), "its peer is on the subnet of no twin");
    other = request(3, "203.0.113.9");
    other.local = *IpAddr::parse("0.0.0.0");
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(3), "twin up0 has no address on its peer's subnet");
    other = request(4);
    other.is_other_kind = true;
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(4), "seamless BFD and SRv6 are not supported");
    other = request(5);
    other.min_tx_us = 0;
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(5), "discriminator, detection multiplier and interval must not be 0");
    other = request(6);
    other.is_multihop = true;
    other.local = IpAddr();
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(6), "a multihop session needs a local address");
    other = request(7);
    other.peer = *IpAddr::parse("0.0.0.0");
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(7), "it has no peer");
    other = request(8);
    other.peer = *IpAddr::parse("2001:db8::2");
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(refusal(8), "its addresses are of different families");
    other.is_multihop = true;
    EXPECT_TRUE(put(other).empty()) << "also of several hops";
    EXPECT_EQ(book.sessions().size(), 8U) << "all are listed";
    EXPECT_TRUE(book.kept().empty());
}

TEST_F(SessionBookTest, RunsARefusedSessionOnceItsRequestIsRight) {
    SessionRequest other = request(7);
    other.interface = "eth7";
    EXPECT_TRUE(put(other).empty());
    EXPECT_EQ(put(request(7)).size(), 1U);
    EXPECT_EQ(refusal(7), "");
    EXPECT_EQ(put(other).at(0).kind, Order::Kind::Remove) << "and ends it again";
}

TEST_F(SessionBookTest, AChangeOfThePeerIsAnotherSession) {
    (void)put(request(7));
    const auto orders = put(request(7, "192.0.2.3"));
    ASSERT_EQ(orders.size(), 2U);
    EXPECT_EQ(orders[0].kind, Order::Kind::Remove);
    EXPECT_EQ(orders[0].terms.peer, *IpAddr::parse("192.0.2.2"));
    EXPECT_EQ(orders[1].kind, Order::Kind::Put);
    EXPECT_EQ(put(request(7, "192.0.2.3")).size(), 1U) << "a change of intervals is none";
}

TEST_F(SessionBookTest, RemovesASession) {
    (void)put(request(7));
    SessionRequest removal = request(7);
    removal.removes = true;
    const auto orders = put(removal);
    ASSERT_EQ(orders.size(), 1U);
    EXPECT_EQ(orders[0].kind, Order::Kind::Remove);
    EXPECT_EQ(orders[0].terms.discriminator, 7U);
    EXPECT_TRUE(put(removal).empty()) << "once";
    EXPECT_TRUE(book.sessions().empty());
}

TEST_F(SessionBookTest, CountsHowOftenASessionWentDown) {
    (void)put(request(7));
    const auto change = [&](State state, int second) {
        EXPECT_TRUE(book.change({.discriminator = 7, .status = status_of(state)},
                                now + std::chrono::seconds(second)));
    };
    change(State::Init, 1);
    change(State::Up, 2);
    EXPECT_EQ(book.session(7)->times_down, 0U);
    change(State::Down, 3);
    change(State::Up, 4);
    change(State::Up, 5);
    change(State::Init, 6);
    EXPECT_EQ(book.session(7)->times_down, 2U);
    EXPECT_EQ(book.session(7)->changed_at, now + std::chrono::seconds(6));
    EXPECT_FALSE(book.change({.discriminator = 8, .status = {}}, now));
}

TEST_F(SessionBookTest, ARestartedDaemonFindsItsSessions) {
    (void)put(request(7));
    (void)put(request(8, "192.0.2.3"));
    EXPECT_TRUE(book.change({.discriminator = 7, .status = status_of(State::Up)}, now));
    book.orphan_all();
    const auto orders = put(request(70));
    ASSERT_EQ(orders.size(), 1U) << "the worker renames it";
    EXPECT_EQ(orders[0].terms.discriminator, 70U);
    EXPECT_FALSE(book.session(7));
    EXPECT_EQ(book.session(70)->status.state, State::Up);
    const auto ended = book.end_orphans();
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].kind, Order::Kind::Remove);
    EXPECT_EQ(ended[0].terms.discriminator, 8U);
    EXPECT_TRUE(book.end_orphans().empty());
    EXPECT_EQ(book.sessions().size(), 1U);
}

TEST_F(SessionBookTest, RunsNoMoreThanItsLimit) {
    for (uint32_t n = 1; n <= limits::kBfdSessionsMax; ++n) {
        SessionRequest one = request(n);
        one.peer = IpAddr::v4(Be32::from_host(0xc0000200 + n + 1));
        EXPECT_EQ(put(one).size(), 1U);
    }
    EXPECT_TRUE(put(request(1'000, "192.0.2.200")).empty());
    EXPECT_EQ(refusal(1'000), "there are 64 sessions already");
    EXPECT_TRUE(put(request(1'000, "192.0.2.200")).empty()) << "a second request is no exception";
    SessionRequest removal = request(1);
    removal.removes = true;
    (void)put(removal);
    EXPECT_EQ(put(request(1'000, "192.0.2.200")).size(), 1U);
}

TEST_F(SessionBookTest, ASuccessorContinuesTheSessions) {
    (void)put(request(7));
    EXPECT_TRUE(book.change({.discriminator = 7, .status = status_of(State::Up, 99)}, now));
    SessionRequest other = request(8);
    other.interface = "eth7";
    (void)put(other);
    const auto kept = book.kept();
    ASSERT_EQ(kept.size(), 1U);
    SessionBook successor;
    const auto orders = successor.resume(kept, now);
    ASSERT_EQ(orders.size(), 1U);
    EXPECT_EQ(orders[0].former.state, State::Up);
    EXPECT_EQ(orders[0].former.remote_discriminator, 99U);
    EXPECT_EQ(orders[0].terms, kept[0].terms);
    EXPECT_EQ(successor.session(7)->twin, "up0");
    EXPECT_EQ(successor.session(7)->status.state, State::Up);
}

}  // namespace session_book_test
}  // namespace penstock::bfd
