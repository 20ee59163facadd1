// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/address_filter.hpp"

#include <gtest/gtest.h>

#include "tests/support/prng.hpp"

namespace penstock {
namespace address_filter_test {

IpAddr any_address(test::Prng& random) {
    if (random.one_in(2)) {
        return IpAddr::v4(Be32::from_raw(static_cast<uint32_t>(random.next())));
    }
    std::array<uint8_t, 16> bytes;
    const uint64_t high = random.next(), low = random.next();
    store(bytes.data(), high);
    store(bytes.data() + 8, low);
    return IpAddr::v6(bytes);
}

TEST(AddressFilter, HoldsWhatWasAddedAndLittleElse) {
    test::Prng random;
    for (int round = 0; round < 100; ++round) {
        AddressFilter filter;
        EXPECT_FALSE(filter.may_hold(any_address(random))) << "nothing was added";
        std::array<IpAddr, 4> added;
        for (IpAddr& address : added) {
            address = any_address(random);
            filter.add(address);
        }
        for (const IpAddr& address : added) {
            EXPECT_TRUE(filter.may_hold(address));
        }
        unsigned passed = 0;
        for (int n = 0; n < 1'000; ++n) {
            passed += filter.may_hold(any_address(random)) ? 1 : 0;
        }
        EXPECT_LT(passed, 60u) << "of 1,000; 16 are to be expected";
    }
}

// The look-ups are for the neighbours of the stored address.
TEST(AddressFilter, TellsTheHostsOfALinkApart) {
    AddressFilter filter;
    filter.add(IpAddr::v4(10, 80, 1, 1));
    unsigned passed = 0;
    for (uint8_t host = 2; host != 0; ++host) {
        passed += filter.may_hold(IpAddr::v4(10, 80, 1, host)) ? 1 : 0;
    }
    EXPECT_LT(passed, 8u);
}

}  // namespace address_filter_test
}  // namespace penstock
