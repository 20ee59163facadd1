// SPDX-License-Identifier: Apache-2.0
// Copies of other gateways' connections: which are held, and when they leave.
#include "control/gateway/shares/copy_book.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
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
        book_.set_plan(planned());
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
    book_.end_pass("edge-2");
    book_.begin_stream("edge-2");
    EXPECT_EQ(book_.counts("edge-2").held, 3U);
    held(1, numbered(1));
    held(9, numbered(3));  // the other gateway has restarted: the connection has another slot
    EXPECT_EQ(book_.counts("edge-2").held, 3U);
    book_.end_pass("edge-2");
    EXPECT_TRUE(has(1));
    EXPECT_FALSE(has(2)) << "not repeated";
    EXPECT_TRUE(has(3));
    held(2, numbered(4));
    book_.end_pass("edge-2");
    EXPECT_EQ(book_.counts("edge-2").held, 3U) << "a later pass removes nothing";
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
    book_.end_pass("edge-2");
    EXPECT_TRUE(has(1));
    EXPECT_FALSE(has(2));
    book_.sweep(1'024, {.now = {1'000'000},
                        .limit_of = [](const auto&) { return 1; },
                        .lives = [](const auto&) { return true; }});
    EXPECT_TRUE(has(1)) << "idle or not is a matter of the worker's table";
    held(7, numbered(1));
    EXPECT_EQ(book_.counts("edge-2").taken, 1U);
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

TEST_F(CopyBookTest, ANewPlanRemovesWhatItNoLongerAllows) {
    held(1, numbered(1));
    held(2, numbered(2, kVipOfShare1));
    EXPECT_EQ(book_.held_in(1), 1U);
    book_.set_plan(planned("edge-3", 2));
    EXPECT_TRUE(has(1));
    EXPECT_FALSE(has(2, kVipOfShare1));
    EXPECT_EQ(book_.held_in(1), 0U);
    held(3, numbered(2, kVipOfShare1));
    EXPECT_EQ(book_.counts("edge-2").foreign, 1U);
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
    book_.set_plan(own);
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

// Against the simplest model: by slot, the last connection that was sent.
TEST_F(CopyBookTest, TheStoreHoldsWhatTheOtherGatewayHas) {
    const uint64_t seed = test::seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Prng random(seed);
    std::map<uint32_t, uint32_t> sent;  // connections by slot
    const auto slot_of = [&](uint32_t n) {
        for (const auto& [slot, connection] : sent) {
            if (connection == n) {
                return static_cast<int>(slot);
            }
        }
        return -1;
    };
    for (int step = 0; step < 20'000; ++step) {
        const auto slot = static_cast<uint32_t>(random.next() % 64);
        const auto n = static_cast<uint32_t>(random.next() % 96);
        if (random.next() % 3 == 0) {
            ended(slot);
            sent.erase(slot);
        } else {
            if (const int former = slot_of(n); former >= 0) {
                sent.erase(static_cast<uint32_t>(former));
            }
            sent[slot] = n;
            held(slot, numbered(n));
        }
        if (random.next() % 500 == 0) {  // the stream begins anew, with half of the connections
            book_.begin_stream("edge-2");
            std::map<uint32_t, uint32_t> repeated;
            uint32_t next = 0;
            for (const auto& [former, connection] : sent) {
                if (random.next() % 2 == 0) {
                    repeated[next] = connection;
                    held(next++, numbered(connection));
                }
            }
            book_.end_pass("edge-2");
            sent = std::move(repeated);
        }
        ASSERT_EQ(store_->size(), sent.size()) << step;
        ASSERT_EQ(book_.counts("edge-2").held, sent.size()) << step;
        ASSERT_EQ(book_.held_in(0), sent.size()) << step;
    }
    for (uint32_t n = 0; n < 96; ++n) {
        EXPECT_EQ(has(n), slot_of(n) >= 0) << n;
    }
}

}  // namespace copy_book_test
}  // namespace penstock::gateway
