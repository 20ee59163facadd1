// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/tcp_options.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace tcp_options_test {

TEST(TcpOptions, TheTimestampIsFoundWhereverItIs_RFC7323) {
    const struct {
        const char* name;
        std::vector<uint8_t> options;
        uint32_t expected;
    } cases[] = {
        {"none", {}, 0},
        {"alone", {8, 10, 1, 2, 3, 4, 0, 0, 0, 0}, 0x01020304},
        {"as Linux has it in a SYN",
         {2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7},
         0x01020304},
        {"as Linux has it later", {1, 1, 8, 10, 0xff, 0, 0, 1, 9, 9, 9, 9}, 0xff000001},
        {"zero", {1, 1, 8, 10, 0, 0, 0, 0, 9, 9, 9, 9}, 1},
        {"behind the end", {0, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0}, 0},
        {"of another length", {8, 6, 1, 2, 3, 4}, 0},
        {"behind a length that cannot be true", {3, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0}, 0},
        {"cut off by the end of the header", {1, 1, 1, 1, 1, 1, 1, 8}, 0},
        {"longer than the header", {1, 1, 8, 10, 1, 2, 3, 4}, 0},
    };
    for (const auto& c : cases) {
        for (const bool is_v4 : {true, false}) {
            test::PacketBuilder link = test::eth();
            const auto frame =
                (is_v4 ? link.ipv4("192.0.2.1", "192.0.2.2") : link.ipv6("2001:db8::1", "2001:db8::2"))
                    .tcp(1, 2, "S")
                    .tcp_options(c.options)
                    .payload("xyz")
                    .build();
            Parsed parsed;
            ASSERT_TRUE(parse(frame, parsed).has_value()) << c.name;
            EXPECT_EQ(timestamp_of(frame.data(), parsed), c.expected) << c.name;
        }
    }
}

}  // namespace tcp_options_test
}  // namespace penstock::packet
