// SPDX-License-Identifier: Apache-2.0
// DPDK's own software RSS as an independent check of nat::Toeplitz. Needs no EAL.
#include <gtest/gtest.h>
#include <rte_thash.h>

#include <array>

#include "dataplane/nat/toeplitz.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/prng.hpp"

namespace penstock::nat {
namespace softrss_test {

// rte_softrss takes the input as 32-bit words in host order.
uint32_t softrss_of(const std::vector<uint8_t>& key, const packet::FlowKey& tuple) {
    const std::vector<uint8_t> input = test::rss_input(tuple);
    std::vector<uint32_t> words;
    for (size_t i = 0; i < input.size(); i += 4) {
        words.push_back(uint32_t{input[i]} << 24 | uint32_t{input[i + 1]} << 16 |
                        uint32_t{input[i + 2]} << 8 | input[i + 3]);
    }
    return rte_softrss(words.data(), static_cast<uint32_t>(words.size()), key.data());
}

TEST(SoftRss, AgreesWithToeplitz) {
    test::Prng prng;
    for (const size_t key_bytes : {40, 52}) {
        for (uint32_t round = 0; round < 200; ++round) {
            const std::vector<uint8_t> key = prng.bytes(key_bytes);
            const Toeplitz toeplitz(key);
            for (uint32_t i = 0; i < 20; ++i) {
                const auto address = [&] {
                    if (i % 2 == 0) {
                        return IpAddr::v4(Be32::from_host(static_cast<uint32_t>(prng.next())));
                    }
                    std::array<uint8_t, 16> bytes{0x20};
                    for (size_t b = 1; b < bytes.size(); ++b) {
                        bytes[b] = prng.byte();
                    }
                    return IpAddr::v6(bytes);
                };
                const packet::FlowKey tuple{address(), address(), static_cast<L4Port>(prng.next()),
                                            static_cast<L4Port>(prng.next())};
                ASSERT_EQ(toeplitz.of(tuple), softrss_of(key, tuple)) << tuple.to_string();
            }
        }
    }
}

}  // namespace softrss_test
}  // namespace penstock::nat
