// SPDX-License-Identifier: Apache-2.0
#include "control/tls/expiry.hpp"

#include <gtest/gtest.h>

namespace penstock::tls {
namespace expiry_test {

using std::chrono::hours;
using What = ExpiryNotice::What;
using Due = std::optional<What>;
constexpr ExpiryNotice::Time kStart{hours(400'000)};

TEST(ExpiryNotice, Warns14DaysAheadThenDailyThenOnExpiry) {
    ExpiryNotice notice;
    const auto expires = kStart + hours(365 * 24);
    const auto at = [&](hours ahead) { return notice.due(expires - ahead, kStart, expires); };
    EXPECT_EQ(at(hours(15 * 24)), Due());
    EXPECT_EQ(at(hours(14 * 24)), Due(What::ExpiresSoon));
    EXPECT_EQ(at(hours(14 * 24 - 1)), Due()) << "once a day";
    EXPECT_EQ(at(hours(13 * 24)), Due(What::ExpiresSoon));
    EXPECT_EQ(at(hours(0)), Due(What::Expired));
    EXPECT_EQ(at(hours(-1)), Due());
    EXPECT_EQ(at(hours(-24)), Due(What::Expired));
}

TEST(ExpiryNotice, ADayLongCertificate_WarnsInItsLastQuarter) {
    ExpiryNotice notice;
    const auto expires = kStart + hours(24);
    EXPECT_EQ(notice.due(expires - hours(7), kStart, expires), Due());
    EXPECT_EQ(notice.due(expires - hours(6), kStart, expires), Due(What::ExpiresSoon));
}

TEST(ExpiryNotice, ARenewedCertificate_BeginsAnew) {
    ExpiryNotice notice;
    const auto expires = kStart + hours(24);
    EXPECT_EQ(notice.due(expires, kStart, expires), Due(What::Expired));
    EXPECT_EQ(notice.due(expires, expires, expires + hours(24)), Due());
    EXPECT_EQ(notice.due(expires + hours(20), expires, expires + hours(24)), Due(What::ExpiresSoon));
}

}  // namespace expiry_test
}  // namespace penstock::tls
