// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/upgrade_requests.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "control/gateway/upgrade/upgrade_record.hpp"

namespace penstock::gateway {
namespace upgrade_requests_test {

v1::UpgradeRequest request_of(const std::string& binary) {
    v1::UpgradeRequest request;
    request.set_binary(binary);
    return request;
}

TEST(UpgradeRequestsTest, AreRefusedWithoutASupervisor) {
    UpgradeRequests requests(nullptr);
    const auto begun = requests.request(request_of("/b"), "unix:");
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, Errc::Outdated);
    EXPECT_NE(begun.error().what.find("--supervise on"), std::string::npos);
    EXPECT_FALSE(requests.last());
}

TEST(UpgradeRequestsTest, ReturnTheAnswerOfTheSupervisor) {
    v1::UpgradeNote answer;
    answer.set_number(3);
    v1::UpgradeNote asked;
    UpgradeRequests* self = nullptr;
    UpgradeRequests requests([&](const v1::UpgradeNote& note) {
        asked = note;
        self->take_answer(answer);
        return Status();
    });
    self = &requests;
    EXPECT_EQ(requests.request(request_of("/b"), "edge-admin").value().number(), 3U);
    EXPECT_EQ(asked.request().binary(), "/b");
    EXPECT_EQ(asked.requested_by(), "edge-admin");
    answer.Clear();
    answer.set_refusal_code(static_cast<uint32_t>(Errc::NotFound));
    answer.set_refusal("the upgrade is refused: binary /b: No such file or directory");
    const auto refused = requests.request(request_of("/b"), "edge-admin");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::NotFound);
    EXPECT_EQ(refused.error().what, answer.refusal());
    answer.set_refusal_code(200);  // of a newer supervisor
    EXPECT_EQ(requests.request(request_of("/b"), "edge-admin").error().code, Errc::Internal);
}

TEST(UpgradeRequestsTest, EndWithTheProcess) {
    UpgradeRequests requests([](const v1::UpgradeNote&) { return Status(); });
    auto pending = std::async(std::launch::async, [&] { return requests.request(request_of("/b"), "x"); });
    requests.stop();
    EXPECT_EQ(pending.get().error().what, "upgrade: penstockd is stopping");
}

TEST(UpgradeRequestsTest, HaveTheLastRecordWithItsAge) {
    UpgradeRequests requests([](const v1::UpgradeNote&) { return Status(); });
    EXPECT_EQ(requests.last().value().number(), 0U);
    v1::UpgradeNote record;
    record.mutable_record()->set_number(4);
    // Not an hour: the machine may have been up for minutes, and its clock counts from there.
    record.set_since_us(monotonic_us(std::chrono::steady_clock::now() - std::chrono::seconds(2)));
    requests.take_record(record);
    EXPECT_EQ(requests.last()->number(), 4U);
    EXPECT_GE(requests.last()->age_ms(), 2'000U);
    EXPECT_LT(requests.last()->age_ms(), 3'600'000U);
}

}  // namespace upgrade_requests_test
}  // namespace penstock::gateway
