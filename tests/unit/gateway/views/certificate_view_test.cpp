// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/certificate_view.hpp"

#include <gtest/gtest.h>

namespace penstock::gateway {
namespace certificate_view_test {

using std::chrono::hours;

TEST(CertificateView, HasTheTimesOfCertificateAndCa) {
    constexpr tls::Material::Time kNow{hours(400'000)};
    const tls::Material material{.certificate_pem = {},
                                 .key_pem = {},
                                 .authority_pem = {},
                                 .subject = "CN=edge-1",
                                 .valid_from = kNow - hours(300 * 24),
                                 .expires = kNow + hours(13 * 24),
                                 .authority_valid_from = kNow - hours(24),
                                 .authority_expires = kNow + hours(1'000 * 24)};
    v1::Certificate message = certificate_message(material, "", kNow);
    EXPECT_EQ(message.subject(), "CN=edge-1");
    EXPECT_EQ(message.own().expires_s(), int64_t{400'000 + 13 * 24} * 3'600);
    EXPECT_EQ(message.own().left_s(), 13 * 24 * 3'600);
    EXPECT_TRUE(message.own().renewal_is_late()) << "less than 14 days are left";
    EXPECT_EQ(message.authority().left_s(), 1'000 * 24 * 3'600);
    EXPECT_FALSE(message.authority().renewal_is_late());
    EXPECT_EQ(message.error(), "");

    message = certificate_message(material, "--tls-cert: cannot be read", kNow + hours(14 * 24));
    EXPECT_EQ(message.own().left_s(), -24 * 3'600);
    EXPECT_TRUE(message.own().renewal_is_late());
    EXPECT_EQ(message.error(), "--tls-cert: cannot be read");
}

}  // namespace certificate_view_test
}  // namespace penstock::gateway
