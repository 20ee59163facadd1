// SPDX-License-Identifier: Apache-2.0
// Copies of other gateways' connections: which are held, and when they leave.
#include "control/gateway/shares/copy_book.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dataplane/copies/store.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/gateway/shares/copy_test_plan.hpp"

namespace penstock::gateway {
namespace copy_book_test {

using namespace copy_test;
using Kind = copies::Record::Kind;

class CopyBookTest : public testing::Test {
 protected:
    explicit CopyBookTest(uint32_t capacity = 1'024)
        : store_(*copies::Store::create(capacity, {7, 11})), book_(*store_) {
        follow(planned());
        book_.begin_stream("edge-2");
    }
    void held(uint32_t slot, const conn::Connection& connection, const std::string& gateway = "edge-2") {
        const copies::Record record{.kind = Kind::Held, .slot = slot, .connection = connection};
        book_.apply(gateway, {&record, 1});
    }
    void ended(uint32_t slot) {
        const copies::Record record{.kind = Kind::Ended, .slot = slot, .connection = {}};
        book_.apply("edge-2", {&record, 1});
    }
    void follow(const std::shared_ptr<const GatewayShares>& plan) {
        book_.set_plan(plan);
        for (uint32_t from = 0; book_.review(from);) {
        }
    }
    void end_pass() {
        for (uint32_t from = 0; book_.end_pass("edge-2", from);) {
        }
    }
    bool has(uint32_t n, const IpAddr& vip = kVipOfShare0) {
        return store_->find(numbered(n, vip).forward).has_value();
    }
    void take(uint32_t n) {
        const auto found = store_->find(numbered(n).forward);
        ASSERT_TRUE(found);
        store_->mark_taken(*found);
    }
    // Sweeps the store once, while the workers' tables hold these connections.
    void sweep(const std::vector<conn::Connection>& living) {
        book_.sweep(1'024, {.now = {2'000},
                            .limit_of = [](const auto&) { return 1'000; },
                            .lives =
                                [&](const conn::Connection& copy) {
                                    return std::ranges::any_of(
                                        living, [&](const conn::Connection& connection) {
                                            return connection.forward == copy.forward &&
                                                   connection.reverse == copy.reverse;
                                        });
                                }});
    }

    std::unique_ptr<copies::Store> store_;
    CopyBook book_;
};

TEST_F(CopyBookTest, HeldIsPutAndRefreshedAndEndedRemoves) {
    held(5, numbered(1));
    auto connection = numbered(1);
    connection.state = static_cast<uint8_t>(conn::TcpState::FinForward);
    connection.last_seen = {3'000};
    held(5, connection);
    const auto found = store_->find(connection.forward);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->connection.tcp_state(), conn::TcpState::FinForward);
    EXPECT_EQ(found->connection.last_seen, CoarseTime{3'000});
    EXPECT_EQ(book_.counts("edge-2").held, 1U);
    EXPECT_EQ(book_.held_in(0), 1U);
    ended(6);
    EXPECT_TRUE(has(1)) << "an end of another slot";
    ended(5);
    EXPECT_FALSE(has(1));
    EXPECT_EQ(book_.counts("edge-2").held, 0U);
    EXPECT_EQ(book_.held_in(0), 0U);
    EXPECT_EQ(book_.counts("edge-2").received, 4U);
}

TEST_F(CopyBookTest, ASlotHasOneConnectionAndAKeyHasOneCopy) {
    held(5, numbered(1));
    held(5, numbered(2));
    EXPECT_FALSE(has(1)) << "replaced in its slot";
    EXPECT_TRUE(has(2));
    held(6, numbered(2));
    EXPECT_TRUE(has(2));
    ended(5);
    EXPECT_TRUE(has(2)) << "the end of its former slot follows";
    ended(6);
    EXPECT_FALSE(has(2));
    EXPECT_EQ(store_->size(), 0U);
}

TEST_F(CopyBookTest, ARecordOfAnotherShareIsRefusedAndCounted) {
    held(1, numbered(1, kVipOfShare2));
    held(2, numbered(2), "edge-3");
    held(3, numbered(3), "edge-9");
    EXPECT_EQ(store_->size(), 0U);
    EXPECT_EQ(book_.counts("edge-2").foreign, 1U);
    EXPECT_EQ(book_.counts("edge-3").foreign, 1U);
    EXPECT_EQ(book_.counts("edge-9").foreign, 1U);
    held(4, numbered(4));
    held(4, numbered(5, kVipOfShare2));
    EXPECT_EQ(store_->size(), 0U) << "the slot holds another connection by now";
}

TEST_F(CopyBookTest, AStreamThatIsLostKeepsItsCopiesAndTheNextOneReplacesThem) {
    held(1, numbered(1));
    held(2, numbered(2));
    held(3, numbered(3));
    end_pass();
    book_.begin_stream("edge-2");
    EXPECT_EQ(book_.counts("edge-2").held, 3U);
    held(1, numbered(1));
    held(9, numbered(3));  // the other gateway has restarted: the connection has another slot
    EXPECT_EQ(book_.counts("edge-2").held, 3U);
    end_pass();
    EXPECT_TRUE(has(1));
    EXPECT_FALSE(has(2)) << "not repeated";
    EXPECT_TRUE(has(3));
    held(2, numbered(4));
    end_pass();
    EXPECT_EQ(book_.counts("edge-2").held, 3U) << "a later pass removes nothing";
}

// Another process of the gateway numbers its connections anew.
TEST_F(CopyBookTest, SlotsOfANewStreamDoNotMeanThoseOfTheFormerOne) {
    held(1, numbered(1));
    held(2, numbered(2));
    book_.begin_stream("edge-2");
    held(1, numbered(3));
    ended(2);
    EXPECT_TRUE(has(1) && has(2) && has(3)) << "until the stream is complete";
    EXPECT_EQ(book_.counts("edge-2").held, 3U);
    held(1, numbered(2));
    EXPECT_FALSE(has(3)) << "replaced in its slot";
    EXPECT_TRUE(has(2)) << "repeated";
    end_pass();
    EXPECT_FALSE(has(1));
    EXPECT_TRUE(has(2));
    ended(1);
    EXPECT_EQ(store_->size(), 0U);
}

TEST_F(CopyBookTest, ATakenCopyStaysUntilTwoSweepsHaveNotFoundItsConnection) {
    held(1, numbered(1));
    held(2, numbered(2));
    take(1);
    ended(1);
    EXPECT_TRUE(has(1)) << "its connection lives here";
    held(1, numbered(3));
    EXPECT_TRUE(has(3)) << "the slot has another connection at the other gateway";
    book_.begin_stream("edge-2");
    end_pass();
    EXPECT_TRUE(has(1));
    EXPECT_FALSE(has(2));
    book_.sweep(1'024, {.now = {1'000'000},
                        .limit_of = [](const auto&) { return 1; },
                        .lives = [](const auto&) { return true; }});
    EXPECT_TRUE(has(1)) << "idle or not is a matter of the worker's table";
    held(7, numbered(1));
    EXPECT_EQ(book_.counts("edge-2").taken, 1U);
    ended(7);
    for (int i = 0; i < 3; ++i) {
        sweep({numbered(1), numbered(8)});
        EXPECT_EQ(book_.taken(), 1U);
    }
    sweep({});
    EXPECT_TRUE(has(1)) << "a search may have missed it";
    sweep({numbered(1)});
    sweep({numbered(8)});
    EXPECT_TRUE(has(1));
    sweep({numbered(8)});
    EXPECT_FALSE(has(1));
    sweep({});
    EXPECT_EQ(book_.taken(), 0U);
    held(7, numbered(1));
    EXPECT_TRUE(has(1));
    EXPECT_EQ(book_.counts("edge-2").held, 1U);
}

TEST_F(CopyBookTest, AnIdleCopyEnds) {
    for (uint32_t n = 0; n < 100; ++n) {
        auto connection = numbered(n);
        connection.last_seen = {2'000 + n};
        held(n, connection);
    }
    for (int part = 0; part < 10; ++part) {
        book_.sweep(11, {.now = {2'150},
                         .limit_of =
                             [](const conn::Connection& copy) {
                                 EXPECT_TRUE(copy.is_tcp());
                                 return 100;
                             },
                         .lives = [](const auto&) { return false; }});
    }
    EXPECT_EQ(store_->size(), 50U);
    EXPECT_FALSE(has(49));
    EXPECT_TRUE(has(50));
    EXPECT_EQ(book_.held_in(0), 50U);
    ended(1);
    held(1, numbered(1));
    EXPECT_EQ(store_->size(), 51U) << "its slot may be used again";
}

TEST_F(CopyBookTest, WhatIsGivenBackIsOwnUntilItIsIdleOrItsTupleIsUsedAgain) {
    const std::vector<copies::Record> records{
        {.kind = Kind::Held, .slot = 1, .connection = numbered(1)},
        {.kind = Kind::Held, .slot = 2, .connection = numbered(2)},
        {.kind = Kind::Held, .slot = 3, .connection = numbered(3)},
        {.kind = Kind::Held, .slot = 4, .connection = numbered(4)},
        {.kind = Kind::Held, .slot = 5, .connection = numbered(5, kVipOfShare2)}};
    book_.take_back("edge-2", records, [](const conn::Connection& connection) {
        return connection.forward == numbered(4).forward;
    });
    EXPECT_EQ(own_copies(*store_), 3U) << "one is adopted, and one of another share";
    EXPECT_EQ(book_.counts("edge-2").foreign, 1U);
    EXPECT_EQ(book_.counts("edge-2").held, 0U);
    EXPECT_EQ(copies::Store::origin_of(store_->find(numbered(1).forward)->connection),
              copies::Store::Origin::Own);
    ended(1);
    end_pass();
    book_.begin_stream("edge-2");
    end_pass();
    EXPECT_EQ(own_copies(*store_), 3U) << "no stream ends them";
    auto later = numbered(1);
    later.last_seen = {2'001};
    held(9, later);
    EXPECT_EQ(own_copies(*store_), 2U) << "the other gateway serves it";
    EXPECT_EQ(book_.counts("edge-2").held, 1U);
    auto earlier = numbered(2);
    earlier.last_seen = {1'999};
    held(10, earlier);
    EXPECT_EQ(book_.counts("edge-2").taken, 1U);
    auto again = numbered(3);
    again.reverse.destination_port += 8;
    const auto sweep_at = [&](uint32_t now) {
        book_.sweep(1'024, {.now = {now},
                            .limit_of = [](const auto&) { return 100; },
                            .lives = [](const auto&) { return false; },
                            .own_of =
                                [&](const packet::FlowKey& key) {
                                    return key == again.forward
                                               ? std::optional(copies::OwnConnection{.connection = again})
                                               : std::nullopt;
                                }});
    };
    sweep_at(2'050);
    EXPECT_EQ(own_copies(*store_), 1U);
    EXPECT_TRUE(has(2));
    EXPECT_FALSE(has(3)) << "a worker has another connection of the tuple";
    sweep_at(2'200);
    EXPECT_EQ(own_copies(*store_), 0U) << "idle";
}

TEST_F(CopyBookTest, ACallerGetsBackWhatIsHeldOfItsConnectionsAndNotTakenOver) {
    held(1, numbered(1));
    held(2, numbered(2, kVipOfShare1));
    held(3, numbered(3));
    take(3);
    const copies::Record own{.kind = Kind::Held, .slot = 4, .connection = numbered(4)};
    book_.take_back("edge-2", {&own, 1}, [](const auto&) { return false; });
    const CoarseClock clock{TscRate{}};
    const auto given = [&](const std::string& gateway) {
        std::vector<std::byte> out;
        uint32_t from = 0;
        EXPECT_FALSE(book_.give_back(gateway, from, {3'000}, clock, out));
        return *copies::decode(out, {3'000}, clock);
    };
    const auto records = given("edge-2");
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].connection.forward, numbered(1).forward);
    EXPECT_EQ(records[1].connection.forward, numbered(2, kVipOfShare1).forward);
    EXPECT_TRUE(given("edge-3").empty());
    for (uint32_t n = 100; n < 700; ++n) {
        held(n, numbered(n));
    }
    EXPECT_EQ(given("edge-2").size(), 602U);
}

// What another gateway has decides whether this one's connection of the same client tuple is needed.
TEST(Supersedes, TheSameConnectionOrALaterAnsweredOneWithALaterPacket) {
    const conn::Connection own = numbered(1);  // opened at 1,000, last packet at 2,000
    auto same = own;
    same.last_seen = {2'100};
    EXPECT_FALSE(supersedes(same, own, 100)) << "within the margin";
    same.last_seen = {2'101};
    EXPECT_TRUE(supersedes(same, own, 100));
    EXPECT_FALSE(supersedes(own, same, 100)) << "its packets pass here";
    auto later = same;
    later.reverse.destination_port += 8;
    EXPECT_FALSE(supersedes(later, own, 100)) << "not opened later";
    later.opened_at = {2'050};
    EXPECT_TRUE(supersedes(later, own, 100));
    for (const auto state : {conn::TcpState::SynSent, conn::TcpState::SynReceived, conn::TcpState::PickedUp,
                             conn::TcpState::Closed, conn::TcpState::TimeWait}) {
        later.state = static_cast<uint8_t>(state);
        EXPECT_FALSE(supersedes(later, own, 100)) << "a SYN may be forged, and an end needs no entry";
    }
    auto other = same;
    other.forward.source_port += 1;
    EXPECT_FALSE(supersedes(other, own, 100)) << "another client has the SNAT port";
    auto udp = own;
    udp.forward.protocol = udp.reverse.protocol = Protocol::Udp;
    udp.state = static_cast<uint8_t>(conn::DatagramState::TwoWay);
    auto later_udp = udp;
    later_udp.reverse.destination_port += 8;
    later_udp.opened_at = {2'050};
    later_udp.last_seen = {2'101};
    EXPECT_TRUE(supersedes(later_udp, udp, 100));
    later_udp.state = static_cast<uint8_t>(conn::DatagramState::OneWay);
    EXPECT_FALSE(supersedes(later_udp, udp, 100));
}

class HiddenCopyTest : public CopyBookTest {
 protected:
    // While a worker has `own_`.
    void sweep_with_own(bool may_serve_as_heir = true) {
        book_.sweep(1'024,
                    {.now = {3'000},
                     .limit_of = [](const auto&) { return 10'000; },
                     .lives =
                         [&](const conn::Connection& copy) {
                             return own_ && own_->forward == copy.forward && own_->reverse == copy.reverse;
                         },
                     .own_of = [&](const packet::FlowKey& key) -> std::optional<copies::OwnConnection> {
                         ++searches_;
                         if (!own_ || own_->forward != key) {
                             return std::nullopt;
                         }
                         return copies::OwnConnection{
                             .worker = {3}, .unit = 77, .generation = 5, .connection = *own_};
                     },
                     .may_serve_as_heir = may_serve_as_heir,
                     .margin = 100});
    }
    bool is_end_ordered() {
        const auto ending = store_->next_ending({3});
        EXPECT_TRUE(!ending ||
                    (ending->unit == 77 && ending->generation == 5 && ending->last_seen == own_->last_seen));
        return ending.has_value();
    }
    // A later connection of the client at the other gateway.
    static conn::Connection later(const IpAddr& vip = kVipOfShare1) {
        auto connection = numbered(1, vip);
        connection.reverse.destination_port += 8;
        connection.opened_at = {2'050};
        connection.last_seen = {2'500};
        return connection;
    }

    std::optional<conn::Connection> own_ = numbered(1, kVipOfShare1);
    int searches_ = 0;
};

TEST_F(HiddenCopyTest, TheEndOfTheConnectionThatHidesItIsOrdered) {
    held(1, later());
    sweep_with_own(false);
    EXPECT_EQ(searches_, 0) << "an heir without connections";
    EXPECT_FALSE(is_end_ordered());
    sweep_with_own();
    EXPECT_TRUE(is_end_ordered());
    own_->last_seen = {2'450};
    sweep_with_own();
    EXPECT_FALSE(is_end_ordered()) << "its packets pass here";
    own_.reset();
    sweep_with_own();
    EXPECT_FALSE(is_end_ordered());
    EXPECT_TRUE(store_->find(later().forward));
}

TEST_F(HiddenCopyTest, APrimaryExaminesEachCopyOfItsHeir) {
    own_ = numbered(1);
    held(1, later(kVipOfShare0));
    sweep_with_own(false);
    EXPECT_TRUE(is_end_ordered());
}

// The taken copy of the former connection has the tuple until its connection is about to end.
TEST_F(HiddenCopyTest, ALaterConnectionReplacesATakenCopy) {
    const auto state = [&] { return store_->find(later().forward); };
    held(1, numbered(1, kVipOfShare1));
    store_->mark_taken(*state());
    held(2, later());
    EXPECT_EQ(book_.counts("edge-2").taken, 1U);
    own_->last_seen = {2'450};
    sweep_with_own();
    EXPECT_FALSE(is_end_ordered());
    EXPECT_EQ(book_.taken(), 0U) << "as of the sweep before";
    EXPECT_TRUE(state()->is_taken) << "its packets pass here";
    own_->last_seen = {2'000};
    sweep_with_own();
    EXPECT_TRUE(is_end_ordered());
    EXPECT_FALSE(state()->is_taken);
    EXPECT_EQ(state()->connection.reverse, later().reverse);
    EXPECT_EQ(book_.counts("edge-2").held, 1U);
    ended(2);
    EXPECT_FALSE(state()) << "a copy like each other one";
}

TEST_F(HiddenCopyTest, AConnectionThatWaitsIsOfNoShareUntilItIsHeld) {
    held(1, numbered(1, kVipOfShare1));
    store_->mark_taken(*store_->find(own_->forward));
    held(2, later());
    const std::string moved =
        "version 2\ngateway edge-1\ngateway edge-2\nshares 2\n"
        "share 0 vips=198.51.100.0/24 primary=edge-1 heir=edge-2\n"
        "share 1 vips=203.0.113.0/28 primary=edge-2 heir=edge-1\nend\n";
    follow(std::make_shared<const GatewayShares>(shares::parse_plan(moved).value(), "edge-1"));
    EXPECT_EQ(book_.held_in(0), 0U);
    EXPECT_EQ(book_.held_in(1), 0U);
    sweep_with_own();
    EXPECT_TRUE(is_end_ordered());
    EXPECT_EQ(store_->find(later().forward)->connection.reverse, later().reverse);
    EXPECT_EQ(book_.held_in(0), 1U);
}

TEST_F(HiddenCopyTest, OneConnectionWaitsForTheEndOfATakenCopy) {
    held(1, numbered(1, kVipOfShare1));
    store_->mark_taken(*store_->find(own_->forward));
    held(2, later());
    auto latest = later();
    latest.reverse.destination_port += 8;
    held(3, latest);
    EXPECT_EQ(book_.counts("edge-2").taken, 2U);
    EXPECT_EQ(book_.counts("edge-2").held, 0U) << "neither the taken copy nor what waits";
    ended(1);
    ended(2);
    sweep_with_own();
    EXPECT_TRUE(is_end_ordered());
    EXPECT_EQ(store_->find(latest.forward)->connection.reverse, latest.reverse);
    held(4, numbered(4, kVipOfShare1));
    ended(3);
    EXPECT_EQ(store_->size(), 1U);
}

// The same connection: the other gateway serves it again.
TEST_F(HiddenCopyTest, AConnectionThatWasTakenBackIsACopyAgain) {
    held(1, numbered(1, kVipOfShare1));
    store_->mark_taken(*store_->find(own_->forward));
    auto back = *own_;
    back.last_seen = {2'600};
    back.state = static_cast<uint8_t>(conn::TcpState::FinForward);
    held(2, back);
    sweep_with_own();
    EXPECT_TRUE(is_end_ordered());
    const auto found = store_->find(own_->forward);
    EXPECT_FALSE(found->is_taken);
    EXPECT_EQ(found->connection.tcp_state(), conn::TcpState::FinForward);
}

TEST_F(HiddenCopyTest, AWaitingConnectionThatHasEndedLeavesNothing) {
    for (const bool is_of_a_former_stream : {false, true}) {
        held(1, numbered(1, kVipOfShare1));
        store_->mark_taken(*store_->find(own_->forward));
        held(2, later());
        if (is_of_a_former_stream) {
            book_.begin_stream("edge-2");
        } else {
            ended(2);
        }
        sweep_with_own();
        EXPECT_FALSE(is_end_ordered());
        own_.reset();
        for (int times = 0; times < 3; ++times) {
            sweep_with_own();
        }
        EXPECT_EQ(store_->size(), 0U);
        own_ = numbered(1, kVipOfShare1);
    }
}

TEST_F(HiddenCopyTest, AWaitingConnectionIsHeldWhenTheFormerOneHasLeft) {
    held(1, numbered(1, kVipOfShare1));
    store_->mark_taken(*store_->find(own_->forward));
    held(2, later());
    own_.reset();
    for (int times = 0; times < 3; ++times) {
        sweep_with_own();
    }
    const auto found = store_->find(later().forward);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->connection.reverse, later().reverse);
    EXPECT_EQ(book_.counts("edge-2").held, 1U);
}

// Connections of one VIP have different shares; edge-1 has no part in share 1.
TEST_F(CopyBookTest, OfASpreadVipTheClientDecides) {
    const std::string text =
        "version 2\ngateway edge-1 address=10.0.0.1:7443 link=10.0.1.1\n"
        "gateway edge-2 address=10.0.0.2:7443 link=10.0.1.2\ngateway edge-3 link=10.0.1.3\n"
        "strays forward\nspread 203.0.113.0/28 key=7\nshares 2\nshare 0 primary=edge-1 heir=edge-2\n"
        "share 1 primary=edge-2 heir=edge-3\nend\n";
    const auto plan = std::make_shared<const GatewayShares>(shares::parse_plan(text).value(), "edge-1");
    held(1, numbered(1));
    held(2, numbered(2));
    ASSERT_EQ(book_.counts("edge-2").held, 2U);
    follow(plan);
    uint64_t allowed = 0, foreign = 0, own = 0;
    const auto is_common = [&](uint32_t n) {
        return plan->share_of(kVipOfShare0, numbered(n).forward.source) == 0;
    };
    EXPECT_EQ(book_.counts("edge-2").held, (is_common(1) ? 1U : 0U) + (is_common(2) ? 1U : 0U));
    for (uint32_t n = 1; n <= 40; ++n) {
        held(n, numbered(n));
        (is_common(n) ? allowed : foreign) += 1;
        EXPECT_EQ(has(n), is_common(n)) << n;
    }
    EXPECT_GT(allowed, 8U);
    EXPECT_GT(foreign, 8U);
    EXPECT_EQ(book_.counts("edge-2").held, allowed);
    EXPECT_EQ(book_.counts("edge-2").foreign, foreign);
    for (uint32_t n = 41; n <= 80; ++n) {
        const copies::Record record{.kind = Kind::Held, .slot = n, .connection = numbered(n)};
        book_.take_back("edge-2", {&record, 1}, [](const auto&) { return false; });
        own += is_common(n) ? 1 : 0;
    }
    EXPECT_EQ(own_copies(*store_), own);
}

TEST_F(CopyBookTest, ANewPlanRemovesWhatItNoLongerAllows) {
    held(1, numbered(1));
    held(2, numbered(2, kVipOfShare1));
    EXPECT_EQ(book_.held_in(1), 1U);
    follow(planned("edge-3", 2));
    EXPECT_TRUE(has(1));
    EXPECT_FALSE(has(2, kVipOfShare1));
    EXPECT_EQ(book_.held_in(1), 0U);
    held(3, numbered(2, kVipOfShare1));
    EXPECT_EQ(book_.counts("edge-2").foreign, 1U);
}

// Its SNAT address is one of share 2, in which this gateway has no role.
TEST_F(CopyBookTest, AConnectionIsOfTheShareOfItsVip) {
    const IpAddr snat = IpAddr::v4(10, 9, 9, 9);
    const auto plan = [&](int version, const std::string& own_vips, const std::string& other_vips) {
        return std::make_shared<const GatewayShares>(
            shares::parse_plan(
                "version " + std::to_string(version) +
                "\ngateway edge-1\ngateway edge-2\ngateway edge-3\nshares 3\nshare 0 vips=" + own_vips +
                " primary=edge-1 heir=edge-2\nshare 1 vips=192.0.2.0/24 primary=edge-1 "
                "heir=edge-3\nshare 2 vips=" +
                other_vips + " snat=10.9.9.9 primary=edge-2 heir=edge-3\nend\n")
                .value(),
            "edge-1");
    };
    const auto translated_to = [&](conn::Connection connection) {
        connection.reverse.destination = snat;
        return connection;
    };
    follow(plan(2, "203.0.113.0/28", "198.51.100.0/24"));
    held(1, translated_to(numbered(1)));
    EXPECT_TRUE(has(1));
    EXPECT_EQ(book_.held_in(0), 1U);
    EXPECT_EQ(book_.held_in(2), 0U);
    // Another gateway has used the port again, for a VIP of another share.
    auto later = translated_to(numbered(2, kVipOfShare2));
    later.reverse = translated_to(numbered(1)).reverse;
    later.last_seen = {2'001};
    held(7, later, "edge-3");
    EXPECT_FALSE(has(1));
    EXPECT_TRUE(has(2, kVipOfShare2));
    const copies::Record own{.kind = Kind::Held, .slot = 3, .connection = translated_to(numbered(3))};
    book_.take_back("edge-2", {&own, 1}, [](const auto&) { return false; });
    EXPECT_EQ(own_copies(*store_), 1U);
    held(4, translated_to(numbered(4)));
    std::vector<std::byte> out;
    uint32_t from = 0;
    EXPECT_FALSE(book_.give_back("edge-2", from, {3'000}, CoarseClock{TscRate{}}, out));
    EXPECT_EQ(copies::count_records(out), 1U);
    follow(plan(3, "198.51.100.0/24", "203.0.113.0/28"));
    EXPECT_FALSE(has(4)) << "its VIP has moved to the share of the SNAT address";
    EXPECT_EQ(book_.counts("edge-2").held, 0U);
}

TEST_F(CopyBookTest, OfTwoGatewaysTheOneWithTheLaterPacketHasTheConnection) {
    // edge-4 has no address, but a share in common: the book does not care.
    const IpAddr vip = IpAddr::v4(80, 11, 12, 10);  // by the hash
    const auto own = std::make_shared<const GatewayShares>(
        shares::parse_plan("version 3\ngateway edge-1\ngateway edge-2\ngateway edge-4\nshares 2\nshare 0 "
                           "vips=80.11.12.10 primary=edge-2 heir=edge-1\nshare 1 vips=203.0.113.0/28 "
                           "primary=edge-4 heir=edge-1\nend\n")
            .value(),
        "edge-1");
    follow(own);
    book_.begin_stream("edge-4");
    held(1, numbered(1, vip), "edge-2");
    auto other = numbered(1);                  // another VIP,
    other.reverse = numbered(1, vip).reverse;  // and the same translation
    other.last_seen = {1'999};
    held(9, other, "edge-4");
    EXPECT_EQ(book_.counts("edge-4").taken, 1U) << "older: refused";
    other.last_seen = {2'001};
    held(9, other, "edge-4");
    EXPECT_FALSE(has(1, vip));
    EXPECT_TRUE(has(1));
    ended(1);
    EXPECT_TRUE(has(1)) << "no copy of that gateway any more";
    EXPECT_EQ(book_.counts("edge-2").held, 0U);
    EXPECT_EQ(book_.counts("edge-4").held, 1U);
    held(2, numbered(2, vip), "edge-2");
    book_.begin_stream("edge-2");
    book_.begin_stream("edge-4");
    end_pass();
    EXPECT_FALSE(has(2, vip));
    EXPECT_TRUE(has(1)) << "the stream of edge-4 has not been complete";
}

class SmallCopyBookTest : public CopyBookTest {
 protected:
    SmallCopyBookTest() : CopyBookTest(64) {}
};

TEST_F(SmallCopyBookTest, WithoutRoomTheRestIsRefusedAndTheStreamIsPartial) {
    uint32_t n = 0;
    while (book_.counts("edge-2").full == 0) {
        held(n, numbered(n));
        ASSERT_LT(++n, 200U);
    }
    EXPECT_TRUE(book_.is_partial("edge-2"));
    EXPECT_FALSE(book_.has_room());
    EXPECT_EQ(book_.counts("edge-2").held, store_->size());
    for (uint32_t slot = 0; slot < 32; ++slot) {
        ended(slot);
    }
    EXPECT_TRUE(book_.has_room());
    book_.begin_stream("edge-2");
    EXPECT_FALSE(book_.is_partial("edge-2"));
}

// More copies than one call examines.
class LargeCopyBookTest : public CopyBookTest {
 protected:
    static constexpr uint32_t kCopies = 3 * CopyBook::kPortion;
    LargeCopyBookTest() : CopyBookTest(2 * kCopies) {
        for (uint32_t n = 0; n < kCopies; ++n) {
            held(n, numbered(n, n % 2 == 0 ? kVipOfShare0 : kVipOfShare1));
        }
    }
};

TEST_F(LargeCopyBookTest, ACallAfterTheFirstPassEndsAPortionOfTheFormerStream) {
    book_.begin_stream("edge-2");
    const uint32_t repeated = kCopies - 2;
    held(0, numbered(repeated));
    uint32_t from = 0;
    EXPECT_TRUE(book_.end_pass("edge-2", from));
    EXPECT_EQ(store_->size(), kCopies - CopyBook::kPortion);
    held(1, numbered(0));
    EXPECT_TRUE(has(0)) << "of the next pass, in a slot of the store that has been examined";
    EXPECT_TRUE(book_.end_pass("edge-2", from));
    EXPECT_EQ(store_->size(), kCopies - 2 * CopyBook::kPortion + 1);
    EXPECT_FALSE(book_.end_pass("edge-2", from));
    EXPECT_TRUE(has(0) && has(repeated));
    EXPECT_EQ(store_->size(), 2U);
    EXPECT_EQ(book_.counts("edge-2").held, 2U);
}

TEST_F(LargeCopyBookTest, AStreamThatRepeatsAllEndsNothing) {
    book_.begin_stream("edge-2");
    for (uint32_t n = 0; n < kCopies; ++n) {
        held(kCopies + n, numbered(n, n % 2 == 0 ? kVipOfShare0 : kVipOfShare1));
    }
    uint32_t from = 0;
    EXPECT_FALSE(book_.end_pass("edge-2", from));
    EXPECT_EQ(from, 0U) << "no slot is examined";
    EXPECT_EQ(store_->size(), kCopies);
}

TEST_F(LargeCopyBookTest, ANewPlanIsFollowedByPortions) {
    book_.set_plan(planned("edge-3", 2));
    EXPECT_EQ(store_->size(), kCopies);
    held(kCopies + 1, numbered(1, kVipOfShare1));
    EXPECT_EQ(book_.counts("edge-2").foreign, 1U) << "records follow the plan at once";
    uint32_t from = 0;
    EXPECT_TRUE(book_.review(from));
    EXPECT_EQ(store_->size(), kCopies - CopyBook::kPortion / 2);
    const auto sweep_all = [&] {
        book_.sweep(store_->slots(), {.now = {2'000},
                                      .limit_of = [](const auto&) { return -1; },
                                      .lives = [](const auto&) { return false; }});
    };
    sweep_all();
    EXPECT_EQ(store_->size(), kCopies - CopyBook::kPortion / 2) << "shares are those of two plans";
    EXPECT_TRUE(book_.review(from));
    EXPECT_FALSE(book_.review(from));
    EXPECT_EQ(store_->size(), kCopies / 2);
    EXPECT_EQ(book_.held_in(0), kCopies / 2);
    EXPECT_EQ(book_.held_in(1), 0U);
    sweep_all();
    EXPECT_EQ(store_->size(), 0U);
}

// Each stream sends another connection, and none is complete.
TEST_F(CopyBookTest, AStreamThatBeginsAgainAndAgainKeepsEachCopyOnce) {
    constexpr uint32_t kConnections = 8;
    for (uint32_t stream = 0; stream < 1'000; ++stream) {
        book_.begin_stream("edge-2");
        held(stream, numbered(stream % kConnections));
        ASSERT_EQ(book_.counts("edge-2").held, std::min(stream + 1, kConnections));
        ASSERT_EQ(store_->size(), std::min(stream + 1, kConnections));
    }
    for (uint32_t slot = 0; slot < 999; ++slot) {
        ended(slot);
    }
    EXPECT_EQ(store_->size(), kConnections) << "ends of slots of former streams";
    end_pass();
    EXPECT_EQ(store_->size(), 1U);
    EXPECT_TRUE(has(999 % kConnections));
}

// The simplest model: the connection in each slot of the stream, and those of former streams.
class Sender {
 public:
    // Number n has one forward key; its two variants have two reverse keys. Two numbers may have one.
    struct Sent {
        uint32_t n = 0;
        uint32_t variant = 0;
        auto operator<=>(const Sent&) const = default;
        [[nodiscard]] uint32_t reverse() const { return n + variant * kNumbers / 2; }
        [[nodiscard]] conn::Connection connection() const {
            auto out = numbered(n);
            out.reverse = numbered(reverse()).reverse;
            return out;
        }
    };
    static constexpr uint32_t kNumbers = 96;

    void held(uint32_t slot, const Sent& sent) {
        slots_.erase(slot);
        const auto has_key = [&](const Sent& other) {
            return other.n == sent.n || other.reverse() == sent.reverse();
        };
        std::erase_if(slots_, [&](const auto& entry) { return has_key(entry.second); });
        std::erase_if(former_, has_key);
        slots_[slot] = sent;
    }
    void ended(uint32_t slot) { slots_.erase(slot); }
    void begin_stream() {
        for (const auto& [slot, sent] : slots_) {
            former_.insert(sent);
        }
        slots_.clear();
    }
    void end_pass() { former_.clear(); }
    [[nodiscard]] std::set<Sent> copies() const {
        std::set<Sent> out = former_;
        for (const auto& [slot, sent] : slots_) {
            out.insert(sent);
        }
        return out;
    }

 private:
    std::map<uint32_t, Sent> slots_;
    std::set<Sent> former_;
};

TEST_F(CopyBookTest, TheStoreHoldsWhatTheOtherGatewayHas) {
    const uint64_t seed = test::seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Prng random(seed);
    Sender model;
    for (int step = 0; step < 20'000; ++step) {
        const auto slot = static_cast<uint32_t>(random.below(64));
        if (random.one_in(100)) {
            book_.begin_stream("edge-2");
            model.begin_stream();
        } else if (random.one_in(100)) {
            end_pass();
            model.end_pass();
        } else if (random.one_in(3)) {
            ended(slot);
            model.ended(slot);
        } else {
            const Sender::Sent sent{static_cast<uint32_t>(random.below(Sender::kNumbers)),
                                    static_cast<uint32_t>(random.below(2))};
            held(slot, sent.connection());
            model.held(slot, sent);
        }
        const std::set<Sender::Sent> expected = model.copies();
        ASSERT_EQ(store_->size(), expected.size()) << step;
        ASSERT_EQ(book_.counts("edge-2").held, expected.size()) << step;
        ASSERT_EQ(book_.held_in(0), expected.size()) << step;
        for (const Sender::Sent& sent : expected) {
            const auto found = store_->find(sent.connection().forward);
            ASSERT_TRUE(found && found->connection.reverse == sent.connection().reverse) << step;
        }
    }
}

}  // namespace copy_book_test
}  // namespace penstock::gateway
