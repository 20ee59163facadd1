// SPDX-License-Identifier: Apache-2.0
// Copies that are sent to another gateway, from tables of connections.
#include "control/gateway/shares/copy_sender.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/conn/table.hpp"
#include "dataplane/copies/record.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/unit/gateway/shares/copy_test_plan.hpp"

namespace penstock::gateway {
namespace copy_sender_test {

using namespace copy_test;
using namespace std::chrono_literals;

// Reads until on_pass() returns false, which is called after each message with the end of a pass.
class Receiver final : public rpc::CopyReceiver {
 public:
    explicit Receiver(std::function<bool(Receiver&)> on_pass) : on_pass_(std::move(on_pass)) {}
    bool send(const v1::ConnectionCopies& copies) override {
        messages.push_back(copies);
        const auto records = copies::decode(std::as_bytes(std::span(copies.records())), {10'000}, clock);
        EXPECT_TRUE(records) << records.error().what;
        for (const copies::Record& record : *records) {
            std::erase_if(held, [&](const auto& each) { return each.slot == record.slot; });
            if (record.kind == copies::Record::Kind::Held) {
                held.push_back(record);
            }
            ++received;
        }
        return !copies.pass_ended() || on_pass_(*this);
    }
    bool wait(std::chrono::milliseconds duration) override {
        waits.push_back(duration);
        return true;
    }
    bool has(const conn::Connection& connection) const {
        return std::ranges::any_of(held, [&](const copies::Record& record) {
            return record.connection.forward == connection.forward &&
                   record.connection.reverse == connection.reverse;
        });
    }

    CoarseClock clock{TscRate{}};
    std::vector<v1::ConnectionCopies> messages;
    std::vector<std::chrono::milliseconds> waits;
    std::vector<copies::Record> held;
    uint64_t received = 0;

 private:
    std::function<bool(Receiver&)> on_pass_;
};

class CopySenderTest : public testing::Test {
 protected:
    static constexpr uint32_t kCapacity = 10'000;

    CopySenderTest()
        : memory_(conn::Table::memory_needed(kCapacity)),
          table_(conn::Table::create(memory_.span(), kCapacity, {3, 5}).value()),
          sender_({.shares = [this] { return plan_; },
                   .tables = {&table_},
                   .clock = CoarseClock{TscRate{}},
                   .now = [] { return CoarseTime{10'000}; },
                   .share_age = 3s}) {}
    void insert(const conn::Connection& connection) {
        const auto inserted =
            table_.insert(connection, table_.hash(connection.forward), table_.hash(connection.reverse));
        ASSERT_EQ(inserted.status, conn::InsertStatus::Inserted);
    }
    Status send(Receiver& receiver, const std::string& gateway = "edge-2") {
        v1::FollowConnectionsRequest request;
        request.set_gateway(gateway);
        request.set_format(kCopyFormat);
        return sender_.send_copies(request, receiver);
    }

    test::AlignedMemory memory_;
    conn::Table table_;
    std::shared_ptr<const GatewayShares> plan_ = planned();
    CopySender sender_;
};

TEST_F(CopySenderTest, AGatewayIsKnownByItsNameAndTheHostOfItsAddress) {
    EXPECT_EQ(sender_.certificate_names_of("edge-2").value(),
              (std::vector<std::string>{"edge-2", "10.0.0.2"}));
    const auto refusal = [&](const std::string& gateway) {
        return sender_.certificate_names_of(gateway).error();
    };
    EXPECT_EQ(refusal("edge-9").code, Errc::NotFound);
    EXPECT_EQ(refusal("edge-9").what, "gateway edge-9 is not in the plan (plan of shares, version 1)");
    EXPECT_EQ(refusal("edge-3").code, Errc::PermissionDenied);
    EXPECT_EQ(refusal("edge-3").what,
              "gateways edge-1 and edge-3 have no share in common (plan of shares, version 1)");
    EXPECT_EQ(refusal("edge-4").what, "gateway edge-4 has no address= (plan of shares, version 1)");
    EXPECT_EQ(refusal("edge-1").code, Errc::PermissionDenied) << "a gateway does not follow itself";
    plan_ = std::make_shared<const GatewayShares>(
        shares::parse_plan("version 2\ngateway edge-1 address=a.example:1\ngateway edge-2 "
                           "address=[2001:DB8:0::2]:7443\ngateway edge-3 address=b.example:1\nend\n")
            .value(),
        "edge-1");
    EXPECT_EQ(sender_.certificate_names_of("edge-2").value()[1], "2001:db8::2") << "as certificates write it";
    EXPECT_EQ(sender_.certificate_names_of("edge-3").value()[1], "b.example");
}

TEST_F(CopySenderTest, ConnectionsOfCommonSharesAreSentOnceThenTheirChanges) {
    insert(numbered(1));
    insert(numbered(2, kVipOfShare1));
    insert(numbered(3, kVipOfShare2));
    auto young = numbered(4);
    young.opened_at = young.last_seen = {9'999};
    insert(young);
    int passes = 0;
    Receiver receiver([&](Receiver& self) {
        EXPECT_EQ(self.held.size(), passes < 2 ? 2U : 3U) << passes;
        EXPECT_TRUE(self.has(numbered(1)) && self.has(numbered(2, kVipOfShare1)));
        EXPECT_EQ(self.messages.back().held(), self.held.size());
        EXPECT_EQ(sender_.sent_to("edge-2").streams, 1U);
        if (++passes == 2) {
            insert(numbered(5));
        }
        return passes < 3;
    });
    EXPECT_TRUE(send(receiver));
    EXPECT_EQ(receiver.received, 3U) << "nothing is repeated";
    EXPECT_EQ(receiver.messages.front().gateway(), "edge-1");
    EXPECT_EQ(receiver.messages.front().plan_version(), 1U);
    EXPECT_EQ(receiver.messages.front().format(), kCopyFormat);
    EXPECT_EQ(sender_.sent_to("edge-2").streams, 0U);
    EXPECT_EQ(sender_.sent_to("edge-2").records, 2U) << "those of messages that arrived";
}

TEST_F(CopySenderTest, TheHeirCopiesConnectionsOfAnyAge) {
    auto as_primary = numbered(1, kVipOfShare0), as_heir = numbered(2, kVipOfShare1);
    for (conn::Connection* young : {&as_primary, &as_heir}) {
        young->opened_at = young->last_seen = {9'999};
        insert(*young);
    }
    Receiver receiver([](Receiver&) { return false; });
    EXPECT_TRUE(send(receiver));
    EXPECT_EQ(receiver.held.size(), 1U);
    EXPECT_TRUE(receiver.has(as_heir));
    EXPECT_TRUE(receiver.messages.front().has_returned());
}

TEST_F(CopySenderTest, ANewPlanChangesTheSelectionOfARunningStream) {
    insert(numbered(1));
    insert(numbered(2, kVipOfShare1));
    int passes = 0;
    Receiver receiver([&](Receiver& self) {
        if (++passes == 1) {
            EXPECT_EQ(self.held.size(), 2U);
            plan_ = planned("edge-3", 2);
            return true;
        }
        EXPECT_EQ(self.held.size(), 1U);
        EXPECT_TRUE(self.has(numbered(1)));
        EXPECT_EQ(self.messages.back().plan_version(), 2U);
        plan_ = std::make_shared<const GatewayShares>(
            shares::parse_plan("version 3\ngateway edge-1 address=a:1\nend\n").value(), "edge-1");
        return true;
    });
    const auto ended = send(receiver);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().what, "gateway edge-2 is not in the plan (plan of shares, version 3)");
    EXPECT_EQ(passes, 2);
}

TEST_F(CopySenderTest, WhatTheStoreHoldsOfTheCallerPrecedesTheConnections) {
    insert(numbered(1));
    const auto own = *copies::Store::create(64, {7, 11});
    ASSERT_TRUE(own->put(numbered(2), copies::Store::Origin::Own).is_set());
    bool is_recovering = true;
    CopySender sender({.shares = [this] { return plan_; },
                       .tables = {&table_},
                       .clock = CoarseClock{TscRate{}},
                       .now = [] { return CoarseTime{10'000}; },
                       .share_age = 3s,
                       .store = own.get(),
                       .give_back =
                           [](const std::string& gateway, uint32_t& from, std::vector<std::byte>& out) {
                               EXPECT_EQ(gateway, "edge-2");
                               if (from != 1) {  // the second slots have none
                                   copies::append_held(out, from, numbered(10 + from), {10'000},
                                                       CoarseClock{TscRate{}});
                               }
                               return ++from < 3;
                           },
                       .is_recovering =
                           [&](const std::string& gateway) {
                               EXPECT_EQ(gateway, "edge-2");
                               return is_recovering;
                           }});
    int passes = 0;
    Receiver receiver([&](Receiver& self) {
        EXPECT_EQ(self.messages.back().recovering(), passes < 2) << "as the pass began";
        is_recovering = passes < 1;
        return ++passes < 4;
    });
    v1::FollowConnectionsRequest request;
    request.set_gateway("edge-2");
    request.set_format(kCopyFormat);
    request.set_give_back(true);
    EXPECT_TRUE(sender.send_copies(request, receiver));
    ASSERT_GE(receiver.messages.size(), 3U);
    EXPECT_TRUE(receiver.messages[0].given_back() && receiver.messages[1].given_back());
    EXPECT_FALSE(receiver.messages[0].pass_ended());
    for (size_t n = 2; n < receiver.messages.size(); ++n) {
        EXPECT_FALSE(receiver.messages[n].given_back());
    }
    EXPECT_TRUE(receiver.has(numbered(1)) && receiver.has(numbered(2)));
    EXPECT_EQ(receiver.messages.back().held(), 2U) << "own copies are connections";
    Receiver other([](Receiver&) { return false; });
    request.set_give_back(false);
    EXPECT_TRUE(sender.send_copies(request, other));
    EXPECT_FALSE(other.messages.front().given_back());
}

TEST_F(CopySenderTest, ConnectionsOfSharesOfWhichItIsTheHeirAreCounted) {
    insert(numbered(1));
    insert(numbered(2, kVipOfShare1));
    insert(numbered(3, kVipOfShare1));
    int passes = 0;
    Receiver receiver([&](Receiver&) {
        EXPECT_EQ(sender_.sent_to("edge-2").as_heir, passes == 0 ? 0U : 2U) << "of the pass before";
        return ++passes < 3;
    });
    EXPECT_TRUE(send(receiver));
    EXPECT_EQ(sender_.sent_to("edge-2").as_heir, 0U) << "no stream";
}

TEST_F(CopySenderTest, TheFirstPassDoesNotPauseAndLaterOnesTakeAboutASecond) {
    for (uint32_t n = 0; n < 9'000; ++n) {
        insert(numbered(n));
    }
    int passes = 0;
    Receiver receiver([&](Receiver& self) {
        EXPECT_TRUE(passes > 0 || self.waits.empty());
        return ++passes < 4;
    });
    EXPECT_TRUE(send(receiver));
    EXPECT_EQ(receiver.held.size(), 9'000U);
    std::chrono::milliseconds all{0};
    for (const auto wait : receiver.waits) {
        all += wait;
    }
    // Two whole passes and the third one up to its end, of three steps each.
    EXPECT_GE(all, 2'500ms);
    EXPECT_LE(all, 3'000ms);
    EXPECT_LE(receiver.waits.size(), 9U);
}

TEST_F(CopySenderTest, AReportAboutLinksIsSentTenTimesASecond_PRESENCE006) {
    CopySender sender({.shares = [this] { return plan_; },
                       .tables = {&table_},
                       .clock = CoarseClock{TscRate{}},
                       .now = [] { return CoarseTime{10'000}; },
                       .holder = [] { return HolderReport{3, 7, 6, 2, 4, {MacAddr{{2, 0, 0, 0, 0, 9}}}}; }});
    int passes = 0;
    Receiver receiver([&](Receiver&) { return ++passes < 3; });
    v1::FollowConnectionsRequest request;
    request.set_gateway("edge-2");
    request.set_format(kCopyFormat);
    ASSERT_TRUE(sender.send_copies(request, receiver));
    EXPECT_LE(std::ranges::max(receiver.waits), 100ms);
    for (const v1::ConnectionCopies& message : receiver.messages) {
        EXPECT_EQ(message.holder().plan_version(), 3u);
        EXPECT_EQ(message.holder().able(), 7u);
        EXPECT_EQ(message.holder().ready(), 6u);
        EXPECT_EQ(message.holder().served(), 4u);
        EXPECT_EQ(message.holder().macs(0), std::string("\2\0\0\0\0\t", 6));
        EXPECT_EQ(message.holder().held(), 2u);
    }
    EXPECT_GE(receiver.messages.size(), 12u) << "between three passes of a second";
    Receiver without([](Receiver&) { return false; });
    ASSERT_TRUE(send(without));
    EXPECT_FALSE(without.messages.at(0).has_holder());
}

}  // namespace copy_sender_test
}  // namespace penstock::gateway
