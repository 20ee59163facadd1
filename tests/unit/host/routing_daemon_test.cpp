// SPDX-License-Identifier: Apache-2.0
#include "control/host/routing_daemon.hpp"

#include <gtest/gtest.h>

namespace penstock::host {
namespace routing_daemon_test {

TEST(RoutingDaemon, Frr) {
    EXPECT_EQ(parse_frr(""), FrrConfig());
    EXPECT_EQ(
        parse_frr("router bgp 64512\n address-family ipv4 unicast\n  redistribute kernel route-map vips\n"),
        (FrrConfig{.bgp_as = "64512", .redistributes = true}));
    EXPECT_TRUE(parse_frr("router ospf\n redistribute kernel\n").redistributes);
    EXPECT_FALSE(parse_frr("router bgp 1\n redistribute connected\n! redistribute kernel\n").redistributes);
    EXPECT_FALSE(parse_frr("router bgp 1\n no redistribute kernel\n").redistributes);
    EXPECT_FALSE(parse_frr("router bgp 1\nexit\nredistribute kernel\n").redistributes)
        << "outside of a router";
}

TEST(RoutingDaemon, Bird) {
    EXPECT_EQ(parse_bird(""), BirdConfig());
    EXPECT_EQ(parse_bird("protocol kernel { learn; ipv4 { import where krt_source = 80; export none; }; }"),
              (BirdConfig{.has_kernel = true, .learns = true, .imports = true}));
    EXPECT_EQ(parse_bird("protocol kernel k4 { ipv4 { import all; }; }"), (BirdConfig{.has_kernel = true}));
    EXPECT_EQ(parse_bird("protocol kernel { learn; ipv4 { import none; }; }"),
              (BirdConfig{.has_kernel = true, .learns = true}));
    EXPECT_EQ(parse_bird("protocol kernel { learn; ipv4 { import where krt_source = 4; }; }"),
              (BirdConfig{.has_kernel = true, .learns = true}));
    EXPECT_TRUE(parse_bird("protocol kernel { learn all; ipv6 { export none; }; }").imports)
        << "the default is all";
    EXPECT_FALSE(parse_bird("protocol kernel { learn no; ipv4 { import all; }; }").learns);
    EXPECT_FALSE(parse_bird("# protocol kernel { learn; }\n/* protocol kernel { learn; } */").has_kernel);
    EXPECT_TRUE(parse_bird("protocol kernel { # learn;\n ipv4 { import all; }; }\nprotocol kernel { learn; }")
                    .imports);
    EXPECT_TRUE(parse_bird("include \"kernel.conf\";").includes);
    EXPECT_FALSE(parse_bird("protocol bgp up { description \"protocol kernel { learn; }\"; }").has_kernel);
}

TEST(RoutingDaemon, UnfinishedTextIsRead) {
    for (const char* text :
         {"protocol kernel", "protocol kernel {", "protocol kernel { learn", "protocol kernel { import", "/*",
          "\"", "#", "protocol", "protocol kernel } }", "protocol kernel { } } }"}) {
        EXPECT_FALSE(parse_bird(text).imports && !parse_bird(text).learns) << text;
    }
}

}  // namespace routing_daemon_test
}  // namespace penstock::host
