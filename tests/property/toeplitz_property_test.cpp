// SPDX-License-Identifier: Apache-2.0
// The table-driven hash, compared with its definition, with any key and any tuple.
#include <gtest/gtest.h>

#include <array>

#include "dataplane/nat/toeplitz.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/prng.hpp"

namespace penstock::nat {
namespace toeplitz_property_test {

IpAddr any_address(test::Prng& prng, bool v4) {
    if (v4) {
        return IpAddr::v4(Be32::from_host(static_cast<uint32_t>(prng.next())));
    }
    std::array<uint8_t, 16> bytes{0x20};
    for (size_t i = 1; i < bytes.size(); ++i) {
        bytes[i] = prng.byte();
    }
    return IpAddr::v6(bytes);
}

TEST(ToeplitzProperty, IsWhatTheDefinitionSays) {
    test::Prng prng;
    for (const size_t key_bytes : {16, 40, 52}) {
        for (uint32_t round = 0; round < 100; ++round) {
            const std::vector<uint8_t> key = prng.bytes(key_bytes);
            const Toeplitz toeplitz(key);
            for (uint32_t i = 0; i < 50; ++i) {
                const bool v4 = i % 2 == 0;
                packet::FlowKey tuple{any_address(prng, v4), any_address(prng, v4),
                                      static_cast<L4Port>(prng.next()), static_cast<L4Port>(prng.next())};
                const uint32_t hash = test::plain_rss(key, tuple);
                ASSERT_EQ(toeplitz.of(tuple), hash) << key_bytes << " " << tuple.to_string();
                const L4Port port = tuple.destination_port;
                tuple.destination_port = 0;
                ASSERT_EQ(toeplitz.of(tuple) ^ toeplitz.of_destination_port(tuple.source.family(), port),
                          hash)
                    << key_bytes << " " << tuple.to_string();
            }
        }
    }
}

}  // namespace toeplitz_property_test
}  // namespace penstock::nat
