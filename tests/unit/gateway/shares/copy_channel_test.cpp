// SPDX-License-Identifier: Apache-2.0
// Messages of another gateway's stream: what is applied, what ends the stream, and the state that is shown.
#include "control/gateway/shares/copy_channel.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/shares/copy_sender.hpp"
#include "dataplane/copies/record.hpp"
#include "dataplane/copies/store.hpp"
#include "tests/unit/gateway/shares/copy_test_plan.hpp"

namespace penstock::gateway {
namespace copy_channel_test {

using namespace copy_test;
using namespace std::chrono_literals;

class Channel : public testing::Test {
 protected:
    explicit Channel(uint32_t capacity = 64)
        : store_(*copies::Store::create(capacity, {7, 11})), shared_(*store_) {
        shared_.book.set_plan(planned());
    }
    v1::ConnectionCopies message(uint32_t first, uint32_t count, bool pass_ended = true) {
        std::vector<std::byte> records;
        for (uint32_t n = first; n < first + count; ++n) {
            copies::append_held(records, n, numbered(n), kNow, clock_);
        }
        v1::ConnectionCopies out;
        out.set_format(kCopyFormat);
        out.set_gateway("edge-2");
        out.set_plan_version(9);
        out.set_records(records.data(), records.size());
        out.set_pass_ended(pass_ended);
        return out;
    }
    Status take(const v1::ConnectionCopies& message) { return channel_.take(message, kNow, at_); }
    ChannelState state() { return channel_.view().state; }

    static constexpr CoarseTime kNow{5'000};
    CoarseClock clock_{TscRate{}};
    std::unique_ptr<copies::Store> store_;
    SharedBook shared_;
    bool knows_ = false;
    CopyChannel channel_{"edge-2", shared_, clock_, [this](const conn::Connection&) { return knows_; }};
    CopyChannel::Time at_{1'000s};
};

TEST_F(Channel, TheStateFollowsTheStream) {
    EXPECT_EQ(state(), ChannelState::Connecting);
    channel_.begin_call(at_);
    EXPECT_EQ(state(), ChannelState::Connecting);
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(0, 3, false)));
    EXPECT_EQ(state(), ChannelState::Copying);
    EXPECT_FALSE(channel_.view().complete_at);
    ASSERT_TRUE(take(message(3, 3)));
    EXPECT_EQ(state(), ChannelState::Complete);
    EXPECT_EQ(channel_.view().complete_at, at_);
    EXPECT_EQ(channel_.view().plan_version, 9U);
    EXPECT_EQ(shared_.book.counts("edge-2").held, 6U);
    channel_.end_stream("connection refused");
    EXPECT_EQ(state(), ChannelState::Connecting);
    EXPECT_EQ(channel_.view().fault, "connection refused");
    EXPECT_EQ(shared_.book.counts("edge-2").held, 6U) << "copies are kept";
    at_ += 5s;
    channel_.begin_call(at_);
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(0, 4)));
    EXPECT_EQ(channel_.view().fault, "");
    EXPECT_EQ(channel_.view().streams, 2U);
    EXPECT_EQ(shared_.book.counts("edge-2").held, 4U) << "the new stream's copies";
}

TEST_F(Channel, AGatewayThatRecoversLosesNoCopies) {
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(0, 3)));
    channel_.begin_stream(at_);
    auto partial = message(0, 1);
    partial.set_recovering(true);
    ASSERT_TRUE(take(partial));
    EXPECT_EQ(state(), ChannelState::Complete);
    EXPECT_EQ(shared_.book.counts("edge-2").held, 3U) << "it has not got back the others yet";
    ASSERT_TRUE(take(message(1, 1)));
    EXPECT_EQ(shared_.book.counts("edge-2").held, 2U) << "one was not repeated";
}

TEST_F(Channel, WhatIsGivenBackIsOwn) {
    EXPECT_FALSE(channel_.view().has_recovered);
    channel_.begin_stream(at_);
    auto given_back = message(0, 3, false);
    given_back.set_given_back(true);
    ASSERT_TRUE(take(given_back));
    EXPECT_EQ(own_copies(*store_), 3U);
    EXPECT_EQ(shared_.book.counts("edge-2").held, 0U);
    EXPECT_FALSE(channel_.view().has_recovered);
    knows_ = true;
    auto known = message(7, 1, false);
    known.set_given_back(true);
    ASSERT_TRUE(take(known));
    EXPECT_EQ(own_copies(*store_), 3U) << "adopted";
    knows_ = false;
    ASSERT_TRUE(take(message(5, 1, false)));
    EXPECT_FALSE(channel_.has_recovered());
    known = message(8, 1, false);
    known.set_given_back(true);
    EXPECT_FALSE(take(known)) << "after others";
    ASSERT_TRUE(take(message(5, 1)));
    EXPECT_TRUE(channel_.has_recovered());
    channel_.end_stream("lost");
    channel_.begin_stream(at_);
    EXPECT_TRUE(channel_.view().has_recovered);
    EXPECT_FALSE(take(known)) << "not requested";
    ASSERT_TRUE(take(message(0, 0)));
    EXPECT_EQ(own_copies(*store_), 3U);
}

TEST_F(Channel, AForgedBatchEndsTheStreamAndNothingOfItEnters) {
    channel_.begin_stream(at_);
    const auto good = message(0, 3);
    struct Forgery {
        const char* name;
        std::string records;
    };
    std::string state = good.records();
    state[48 + 6] = 99;
    std::string kind = good.records();
    kind[2 * 48] = 9;
    for (const auto& [name, records] : {Forgery{"no such state", state}, Forgery{"no such kind", kind},
                                        Forgery{"cut", good.records().substr(0, 100)},
                                        Forgery{"too long", std::string(copies::kBatchBytesMax + 1, '\1')}}) {
        auto forged = good;
        forged.set_records(records);
        const auto refused = take(forged);
        ASSERT_FALSE(refused) << name;
        EXPECT_TRUE(refused.error().what.starts_with("records refused: ")) << refused.error().what;
        EXPECT_EQ(store_->size(), 0U) << name;
    }
}

TEST_F(Channel, AnotherGatewayOrFormatEndsTheStream) {
    channel_.begin_stream(at_);
    auto other = message(0, 1);
    other.set_gateway("edge-3\n");
    EXPECT_EQ(take(other).error().what,
              "gateway edge-3\\n answers at the address of gateway edge-2: correct its address= in the plan");
    auto later = message(0, 1);
    later.set_format(2);
    EXPECT_EQ(take(later).error().what, "records of format 2, this gateway reads format 1");
    EXPECT_EQ(store_->size(), 0U);
}

TEST_F(Channel, SilenceRequiresANewStream) {
    channel_.begin_call(at_);
    EXPECT_FALSE(channel_.needs_restart(at_ + 10s));
    EXPECT_TRUE(channel_.needs_restart(at_ + 11s)) << "no first message";
    channel_.begin_stream(at_ + 5s);
    EXPECT_FALSE(channel_.needs_restart(at_ + 11s));
    at_ += 20s;
    ASSERT_TRUE(take(message(0, 1)));
    EXPECT_FALSE(channel_.needs_restart(at_ + 10s));
    EXPECT_TRUE(channel_.needs_restart(at_ + 11s));
    channel_.end_stream("");
    EXPECT_FALSE(channel_.needs_restart(at_ + 60s)) << "one is about to begin";
}

TEST_F(Channel, TheOtherGatewayTakesStraysWhileItsStreamReportsSo) {
    int changes = 0;
    CopyChannel channel(
        "edge-2", shared_, clock_, [](const conn::Connection&) { return false; }, [&] { ++changes; });
    const auto reports = [&](bool takes) {
        auto next = message(0, 0);
        next.set_takes_strays(takes);
        ASSERT_TRUE(channel.take(next, kNow, at_));
    };
    const auto takes = [&](CopyChannel::Time now) { return channel.takes_strays(now).value(); };
    channel.begin_call(at_);
    channel.begin_stream(at_);
    EXPECT_EQ(channel.takes_strays(at_), std::nullopt) << "no message yet";
    reports(false);
    EXPECT_FALSE(takes(at_));
    EXPECT_EQ(changes, 1);
    reports(true);
    reports(true);
    EXPECT_TRUE(takes(at_));
    EXPECT_EQ(changes, 2);
    EXPECT_TRUE(takes(at_ + CopyChannel::kStraySilence));
    EXPECT_FALSE(takes(at_ + CopyChannel::kStraySilence + 1ms)) << "it is silent";
    channel.end_stream("", CopyChannel::End::Replaced);
    EXPECT_TRUE(takes(at_)) << "another stream begins";
    EXPECT_EQ(changes, 2);
    channel.begin_stream(at_);
    channel.end_stream("lost");
    EXPECT_FALSE(takes(at_));
    EXPECT_EQ(changes, 3);
    channel.end_stream("refused");
    EXPECT_EQ(changes, 3);
}

TEST_F(Channel, AFullStoreRequiresANewStreamWhenItHasRoom) {
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(0, 200)));
    EXPECT_EQ(state(), ChannelState::Full);
    EXPECT_FALSE(channel_.needs_restart(at_));
    std::vector<std::byte> ends;
    for (uint32_t slot = 0; slot < 32; ++slot) {
        copies::append_ended(ends, slot);
    }
    auto ended = message(0, 0);
    ended.set_records(ends.data(), ends.size());
    ASSERT_TRUE(take(ended));
    EXPECT_EQ(state(), ChannelState::Full);
    EXPECT_FALSE(channel_.needs_restart(at_ + 5s)) << "the store may be full again at once";
    at_ += 60s;
    ASSERT_TRUE(take(message(0, 0)));
    EXPECT_TRUE(channel_.needs_restart(at_));
    channel_.end_stream("");
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(0, 20)));
    EXPECT_EQ(state(), ChannelState::Complete);
}

class LargeChannel : public Channel {
 protected:
    static constexpr uint32_t kCopies = CopyBook::kPortion + 1'000;
    LargeChannel() : Channel(2 * kCopies) {}
};

TEST_F(LargeChannel, AMessageIsAppliedAndAFormerStreamEndsByPortions) {
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(0, kCopies)));
    EXPECT_EQ(shared_.book.counts("edge-2").held, kCopies);
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(7, 1)));
    EXPECT_EQ(state(), ChannelState::Complete);
    EXPECT_EQ(store_->size(), 1U);
}

// The portions end when the other thread has had the book.
TEST_F(Channel, AnotherThreadGetsTheBookBetweenTwoPortions) {
    bool was_locked = false;
    uint64_t portions = 0;
    std::jthread other;
    shared_.in_portions([&](CopyBook& book) {
        EXPECT_EQ(&book, &shared_.book);
        if (++portions == 1) {
            other = std::jthread([&] {
                const std::lock_guard lock(shared_.mutex);
                was_locked = true;
            });
        }
        return !was_locked;
    });
    EXPECT_GT(portions, 1U);
}

// On links without routers.
TEST_F(Channel, AGatewayReportsUntilItIsSilent_PRESENCE006) {
    EXPECT_FALSE(channel_.holder(at_).is_reporting);
    EXPECT_EQ(channel_.holder(at_).silent_since, CopyChannel::Time());
    channel_.begin_call(at_);
    channel_.begin_stream(at_);
    ASSERT_TRUE(take(message(0, 1)));
    EXPECT_FALSE(channel_.holder(at_).is_reporting) << "without a report";
    v1::ConnectionCopies reporting = message(0, 1);
    v1::HolderReport& report = *reporting.mutable_holder();
    report.set_plan_version(9);
    report.set_able(7);
    report.set_ready(5);
    report.set_held(4);
    report.set_served(1);
    report.add_macs("\2\1\1\1\1\1");
    report.add_macs("short");
    ASSERT_TRUE(take(reporting));
    const HolderReport expected{.plan_version = 9,
                                .able = 7,
                                .ready = 5,
                                .held = 4,
                                .served = 1,
                                .macs = {MacAddr{{2, 1, 1, 1, 1, 1}}}};
    EXPECT_TRUE(channel_.holder(at_).is_reporting);
    EXPECT_EQ(channel_.holder(at_).report, expected);
    EXPECT_TRUE(channel_.holder(at_ + LinkHolder::kSilence).is_reporting);
    const LinkHolder::Peer silent = channel_.holder(at_ + LinkHolder::kSilence + 1ms);
    EXPECT_FALSE(silent.is_reporting);
    EXPECT_EQ(silent.silent_since, at_);
    EXPECT_EQ(silent.report, (HolderReport{.macs = expected.macs}));
    channel_.end_stream("replaced", CopyChannel::End::Replaced);
    EXPECT_TRUE(channel_.holder(at_).is_reporting) << "a new plan is no silence";
    channel_.end_stream("failed");
    EXPECT_FALSE(channel_.holder(at_).is_reporting);
    EXPECT_EQ(channel_.holder(at_).silent_since, at_);
    EXPECT_EQ(channel_.holder(at_).report.macs, expected.macs);
}

}  // namespace copy_channel_test
}  // namespace penstock::gateway
