// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/messages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

namespace penstock::gateway {
namespace messages_test {

class UpgradeMessagesTest : public testing::Test {
 protected:
    void SetUp() override {
        int pair[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        one_ = Descriptor(pair[0]);
        other_ = Descriptor(pair[1]);
    }
    Descriptor one_, other_;
};

TEST_F(UpgradeMessagesTest, KeepTheirOrder) {
    ASSERT_TRUE(send_message(one_.get(), UpgradeMessage::Prepared));
    ASSERT_TRUE(send_message(one_.get(), UpgradeMessage::Forwards));
    EXPECT_EQ(receive_message(other_.get())->message, UpgradeMessage::Prepared);
    EXPECT_EQ(receive_message(other_.get())->message, UpgradeMessage::Forwards);
    EXPECT_FALSE(receive_message(other_.get()));
}

TEST_F(UpgradeMessagesTest, KindOfTheNextOneIsReadBeforeIt) {
    EXPECT_FALSE(next_message(other_.get())) << "there is none";
    v1::UpgradeNote note;
    note.mutable_memory()->set_workers(3);
    ASSERT_TRUE(send_message(one_.get(), UpgradeMessage::Memory, note));
    ASSERT_TRUE(send_message(one_.get(), UpgradeMessage::TakeOver));
    EXPECT_EQ(next_message(other_.get()), UpgradeMessage::Memory);
    EXPECT_EQ(next_message(other_.get()), UpgradeMessage::Memory) << "it stays";
    EXPECT_EQ(receive_message(other_.get())->note.memory().workers(), 3U);
    EXPECT_EQ(next_message(other_.get()), UpgradeMessage::TakeOver);
    one_ = Descriptor();
    EXPECT_EQ(receive_message(other_.get())->message, UpgradeMessage::TakeOver);
    EXPECT_FALSE(next_message(other_.get())) << "the other side has ended";
}

TEST_F(UpgradeMessagesTest, CarryDescriptors) {
    const std::array sent{one_.get(), other_.get()};
    ASSERT_TRUE(send_message(one_.get(), UpgradeMessage::Twins, {}, sent));
    const auto received = receive_message(other_.get());
    ASSERT_TRUE(received);
    ASSERT_EQ(received->descriptors.size(), sent.size());
    for (size_t i = 0; i < sent.size(); ++i) {
        struct stat before{}, after{};
        ASSERT_EQ(fstat(sent[i], &before), 0);
        ASSERT_EQ(fstat(received->descriptors[i].get(), &after), 0);
        EXPECT_EQ(before.st_ino, after.st_ino);
        EXPECT_NE(fcntl(received->descriptors[i].get(), F_GETFD) & FD_CLOEXEC, 0);
    }
}

TEST_F(UpgradeMessagesTest, CarryNotes) {
    v1::UpgradeNote note;
    note.mutable_request()->set_binary("/usr/bin/penstockd");
    note.set_requested_by("unix:");
    ASSERT_TRUE(send_message(one_.get(), UpgradeMessage::Request, note));
    const auto received = receive_message(other_.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->message, UpgradeMessage::Request);
    EXPECT_EQ(received->note.SerializeAsString(), note.SerializeAsString());
}

TEST_F(UpgradeMessagesTest, OfAnUnknownContentHaveAnEmptyNote) {
    ASSERT_EQ(write(one_.get(), "p\xff\xff", 3), 3);
    const auto received = receive_message(other_.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->message, UpgradeMessage::Prepared);
    EXPECT_EQ(received->note.ByteSizeLong(), 0U);
}

TEST_F(UpgradeMessagesTest, ThatAreTooLongAreRefused) {
    v1::UpgradeNote note;
    note.set_requested_by(std::string(kMessageMax, 'a'));
    EXPECT_EQ(send_message(one_.get(), UpgradeMessage::Request, note).error().code, Errc::Exhausted);
    EXPECT_FALSE(receive_message(other_.get()));
}

TEST_F(UpgradeMessagesTest, ToAProcessThatHasEndedFail) {
    {
        const Descriptor closed = std::move(other_);
    }
    EXPECT_FALSE(receive_message(one_.get()));
    EXPECT_EQ(send_message(one_.get(), UpgradeMessage::Prepared).error().code, Errc::Unavailable);
}

}  // namespace messages_test
}  // namespace penstock::gateway
