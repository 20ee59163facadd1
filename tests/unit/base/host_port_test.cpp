// SPDX-License-Identifier: Apache-2.0
#include "control/base/host_port.hpp"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace host_port_test {

TEST(HostPort, HasAnIpv6AddressWithoutBrackets) {
    struct Row {
        std::string text, host, port;
    };
    for (const Row& row : {Row{"192.0.2.1:9106", "192.0.2.1", "9106"},
                           Row{"[2001:db8::1]:9106", "2001:db8::1", "9106"}, Row{"[::]:0", "::", "0"},
                           Row{"localhost:9105", "localhost", "9105"}, Row{"localhost", "localhost", ""}}) {
        const HostPort parts = split_host_port(row.text);
        EXPECT_EQ(parts.host, row.host) << row.text;
        EXPECT_EQ(parts.port, row.port) << row.text;
    }
}

}  // namespace host_port_test
}  // namespace penstock
