// SPDX-License-Identifier: Apache-2.0
#include "control/http/admission.hpp"

#include <gtest/gtest.h>

namespace penstock::http {
namespace admission_test {

IpAddr ip(const std::string& text) {
    return *IpAddr::parse(text);
}

constexpr AdmissionLimits kSmall{.remote_max = 4, .local_max = 2, .per_source_max = 3};

class AdmissionTest : public testing::Test {
 protected:
    // The evicted connection, 0: none.
    ConnectionId admit(const std::string& source) {
        return admission_.admit(++last_, ip(source)).value_or(0);
    }

    Admission admission_{kSmall};
    ConnectionId last_ = 0;
};

TEST_F(AdmissionTest, ASourceAtItsLimitLosesItsOwnOldest) {
    EXPECT_EQ(admit("192.0.2.9"), 0U);
    EXPECT_EQ(admit("192.0.2.1"), 0U);
    EXPECT_EQ(admit("192.0.2.1"), 0U);
    EXPECT_EQ(admit("192.0.2.1"), 0U);
    EXPECT_EQ(admit("192.0.2.1"), 2U) << "not 1, which is older but another's";
    EXPECT_EQ(admit("192.0.2.1"), 3U);
    EXPECT_EQ(admission_.size(), 4U);
}

TEST_F(AdmissionTest, AFullPoolLosesItsOldest) {
    for (int i = 1; i <= 4; ++i) {
        EXPECT_EQ(admit("192.0.2." + std::to_string(i)), 0U);
    }
    EXPECT_EQ(admit("192.0.2.5"), 1U);
    EXPECT_EQ(admit("192.0.2.6"), 2U);
    EXPECT_EQ(admission_.size(), 4U);
}

TEST_F(AdmissionTest, SilentOnesGoBeforeThoseThatAreAnswered) {
    for (int i = 1; i <= 4; ++i) {
        admit("192.0.2." + std::to_string(i));
    }
    admission_.set_silent(1, false);
    admission_.set_silent(2, false);
    EXPECT_EQ(admit("192.0.2.5"), 3U);
    admission_.set_silent(2, true);  // its response has been sent
    EXPECT_EQ(admit("192.0.2.6"), 2U) << "silent again, and the oldest";
    for (const ConnectionId id : {4U, 5U, 6U}) {
        admission_.set_silent(id, false);
    }
    EXPECT_EQ(admit("192.0.2.7"), 1U) << "all are being answered: the oldest";
}

TEST_F(AdmissionTest, LoopbackHasAPoolOfItsOwn) {
    for (int i = 1; i <= 4; ++i) {
        admit("192.0.2." + std::to_string(i));
    }
    EXPECT_EQ(admit("127.0.0.1"), 0U) << "clients from outside have their own slots only";
    EXPECT_EQ(admit("::1"), 0U);
    EXPECT_EQ(admit("127.0.0.1"), 5U);
    EXPECT_EQ(admit("192.0.2.8"), 1U) << "and loopback takes none of theirs";
    EXPECT_EQ(admission_.size(), 6U);
}

TEST_F(AdmissionTest, AnIpv6SourceIsItsPrefixOf64Bits) {
    EXPECT_EQ(admit("2001:db8:0:1::1"), 0U) << "another prefix";
    EXPECT_EQ(admit("2001:db8::1"), 0U);
    EXPECT_EQ(admit("2001:db8::2"), 0U);
    EXPECT_EQ(admit("2001:db8::ffff:0:0:3"), 0U);
    EXPECT_EQ(admit("2001:db8::4"), 2U)
        << "not 1, which is the oldest of the full pool and of another prefix";
}

TEST_F(AdmissionTest, RemovedOnesMakeRoom) {
    for (int i = 1; i <= 4; ++i) {
        admit("192.0.2." + std::to_string(i));
    }
    admission_.set_silent(2, false);
    admission_.remove(2);
    admission_.remove(2);
    admission_.set_silent(2, true);
    EXPECT_EQ(admission_.size(), 3U);
    EXPECT_EQ(admit("192.0.2.5"), 0U);
    EXPECT_EQ(admit("192.0.2.6"), 1U);
}

}  // namespace admission_test
}  // namespace penstock::http
