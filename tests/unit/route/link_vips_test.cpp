// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/link_vips.hpp"

#include <gtest/gtest.h>

namespace penstock::route {
namespace link_vips_test {

const IpAddr kVip = IpAddr::v4(192, 0, 2, 80), kVip6 = IpAddr::v6({0x20, 1, 0xd, 0xb8});

TEST(LinkVips, HaveEachAddressOnItsPortOnly_PRESENCE006) {
    const LinkVips vips({{kVip6, NicPortId{0}}, {kVip, NicPortId{1}}, {kVip, NicPortId{1}}});
    EXPECT_TRUE(vips.find(NicPortId{1}, kVip));
    EXPECT_FALSE(vips.find(NicPortId{0}, kVip));
    EXPECT_TRUE(vips.find(NicPortId{0}, kVip6));
    EXPECT_FALSE(vips.find(NicPortId{0}, IpAddr()));
    EXPECT_TRUE(std::ranges::is_sorted(vips.all()));
    EXPECT_FALSE(LinkVips({}).find(NicPortId{0}, kVip));
}

TEST(LinkVips, TellSnatAddressesFromVips_PRESENCE006) {
    const LinkVips vips({{kVip, NicPortId{0}, true}, {kVip6, NicPortId{0}}});
    EXPECT_TRUE(vips.find(NicPortId{0}, kVip)->is_snat);
    EXPECT_FALSE(vips.find(NicPortId{0}, kVip6)->is_snat);
}

}  // namespace link_vips_test
}  // namespace penstock::route
