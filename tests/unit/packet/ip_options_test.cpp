// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/ip_options.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace ip_options_test {

using Bytes = std::vector<uint8_t>;
using test::eth;

TEST(IpOptions, OnlySourceRoutesAndWhatContradictsItselfAreRefused) {
    const struct {
        const char* name;
        Bytes options;
        std::optional<DropReason> refused;
    } cases[] = {
        {"none", {}, {}},
        {"padding", {1, 1, 1, 0}, {}},
        {"record route", {7, 7, 4, 0, 0, 0, 0, 0}, {}},
        {"timestamp", {68, 8, 5, 0, 0, 0, 0, 0}, {}},
        {"router alert", {148, 4, 0, 0}, {}},
        {"security labels, which are nobody's here", {134, 6, 0, 0, 0, 1, 0, 0}, {}},
        {"loose source route", {131, 7, 4, 192, 0, 2, 1, 0}, DropReason::IpOptions},
        {"strict source route", {137, 7, 4, 192, 0, 2, 1, 0}, DropReason::IpOptions},
        {"one that has been walked to its end", {131, 7, 8, 192, 0, 2, 1, 0}, DropReason::IpOptions},
        {"behind others", {1, 148, 4, 0, 0, 137, 3, 4}, DropReason::IpOptions},
        {"behind the end of the list it is padding", {0, 131, 7, 4}, {}},
        {"a length of nothing", {7, 0, 4, 0}, DropReason::BadIpHeader},
        {"a length without itself", {7, 1, 4, 0}, DropReason::BadIpHeader},
        {"longer than the header", {7, 5, 4, 0}, DropReason::BadIpHeader},
        {"a type alone at the end", {1, 1, 1, 7}, DropReason::BadIpHeader},
        {"a source route that is cut off", {1, 1, 131, 7}, DropReason::BadIpHeader},
    };
    for (const auto& c : cases) {
        EXPECT_EQ(refuse_options(c.options), c.refused) << c.name;
        Parsed parsed;
        const ParseResult result =
            parse(eth().ipv4("192.0.2.1", "80.11.12.10").options(c.options).udp(5'000, 53).build(), parsed);
        EXPECT_EQ(result.has_value(), !c.refused) << c.name;
        if (c.refused && !result) {
            EXPECT_EQ(result.error(), *c.refused) << c.name;
        }
    }
}

// Random bytes in a buffer of exactly their size: a result, and no read beyond the end.
TEST(IpOptions, AnyBytesAreReadWithinTheirBounds) {
    test::Prng prng;
    for (int round = 0; round < 100'000; ++round) {
        Bytes options = prng.bytes(prng.below(11) * 4);
        for (uint8_t& byte : options) {
            byte =
                prng.one_in(2) ? static_cast<uint8_t>(byte % 9) : byte;  // small values are lengths that fit
        }
        const auto refused = refuse_options(options);
        EXPECT_TRUE(!refused || *refused == DropReason::BadIpHeader || *refused == DropReason::IpOptions);
    }
}

}  // namespace ip_options_test
}  // namespace penstock::packet
