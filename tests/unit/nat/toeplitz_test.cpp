// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/toeplitz.hpp"

#include <gtest/gtest.h>

#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/rss_vectors.hpp"

namespace penstock::nat {
namespace toeplitz_test {

using packet::FlowKey;

// The model is checked against the published numbers as well, because the property tests depend on it.
TEST(Toeplitz, AgreesWithThePublishedVerificationSuite) {
    const Toeplitz toeplitz(test::kRssSuiteKey);
    for (const test::RssVector& vector : test::kRssSuite) {
        FlowKey key{*IpAddr::parse(vector.source), *IpAddr::parse(vector.destination), vector.source_port,
                    vector.destination_port};
        for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {  // not part of the hash
            key.protocol = protocol;
            EXPECT_EQ(toeplitz.of(key), vector.tuple) << key.to_string();
        }
        EXPECT_EQ(test::plain_rss(test::kRssSuiteKey, key), vector.tuple) << key.to_string();
        key.source_port = key.destination_port = 0;  // ports of zero add nothing
        EXPECT_EQ(toeplitz.of(key), vector.addresses) << key.to_string();
        EXPECT_EQ(test::plain_rss(test::kRssSuiteKey, key), vector.addresses) << key.to_string();
    }
}

TEST(Toeplitz, ADestinationPortAddsTheSameToEveryTuple) {
    const Toeplitz toeplitz(test::kRssSuiteKey);
    for (const test::RssVector& vector : test::kRssSuite) {
        FlowKey key{*IpAddr::parse(vector.source), *IpAddr::parse(vector.destination), vector.source_port, 0};
        const uint32_t base = toeplitz.of(key);
        EXPECT_EQ(base ^ toeplitz.of_destination_port(key.source.family(), vector.destination_port),
                  vector.tuple)
            << key.to_string();
        for (uint32_t port = 0; port < 65'536; port += 64) {
            key.destination_port = static_cast<L4Port>(port + 37);
            EXPECT_EQ(toeplitz.of(key),
                      base ^ toeplitz.of_destination_port(key.source.family(), static_cast<L4Port>(port)) ^
                          toeplitz.of_destination_port(key.source.family(), 37))
                << key.to_string();
        }
    }
}

}  // namespace toeplitz_test
}  // namespace penstock::nat
