// SPDX-License-Identifier: Apache-2.0
#include "control/client/target.hpp"

#include <gtest/gtest.h>

namespace penstock::client {
namespace target_test {

TEST(Target, TakesUnixPathsAndHostsWithPorts) {
    for (const char* text : {"unix:/run/penstock/penstockd.sock", "unix:relative.sock",
                             "gateway.example:7443", "10.0.0.1:1", "[2001:db8::1]:65535"}) {
        EXPECT_TRUE(parse_target(text)) << text;
    }
}

TEST(Target, RefusesWhatIsNeither) {
    const std::string long_path = "unix:/" + std::string(107, 'x');
    for (const std::string& text :
         {std::string(), std::string("unix:"), std::string("host"), std::string(":80"), std::string("host:0"),
          std::string("host:65536"), std::string("host:80x"), std::string("2001:db8::1:80"),
          std::string("http://host:80"), long_path}) {
        const auto target = parse_target(text);
        ASSERT_FALSE(target) << text;
        EXPECT_NE(target.error().what.find("\"" + text + "\""), std::string::npos);
    }
}

TEST(Target, TcpNeedsAllThreeFilesAndAUnixSocketNone) {
    const Target tcp = parse_target("gateway.example:7443").value();
    EXPECT_TRUE(check_tls(Target{}, {}));
    EXPECT_TRUE(check_tls(tcp, {"cert", "key", "ca"}));
    EXPECT_FALSE(check_tls(tcp, {}));
    EXPECT_FALSE(check_tls(tcp, {"cert", "key", ""}));
}

}  // namespace target_test
}  // namespace penstock::client
