// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/socket_address.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace penstock {

TEST(SocketAddress, TextIsParsedBack) {
    for (const std::string text : {"10.0.0.1:80", "0.0.0.0:0", "[::]:65535", "[2001:db8::1]:443"}) {
        const auto socket = SocketAddress::parse(text);
        ASSERT_TRUE(socket) << text;
        EXPECT_EQ(socket->to_string(), text);
    }
    const auto socket = SocketAddress::parse("10.0.0.1:80");
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->address, IpAddr::v4(10, 0, 0, 1));
    EXPECT_EQ(socket->port, 80);
}

TEST(SocketAddress, AnythingElseIsRefused) {
    for (const std::string text :
         {"", ":", ":80", "10.0.0.1", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:80 ",
          "10.0.0.1:0x50", "[10.0.0.1]:80", "2001:db8::1", "2001:db8::1:80", "[]:80", "[2001:db8::1]",
          "[2001:db8::1:80", "localhost:80", "[::ffff:10.0.0.1]:80"}) {
        const auto socket = SocketAddress::parse(text);
        ASSERT_FALSE(socket) << text;
        EXPECT_EQ(socket.error().code, Errc::InvalidArgument);
        EXPECT_EQ(socket.error().what,
                  "\"" + text + "\" must be ADDRESS:PORT, with an IPv6 address in brackets");
    }
}

TEST(SocketAddress, OrderIsByAddressThenPort) {
    std::vector<SocketAddress> sockets = {
        {IpAddr::v4(10, 0, 0, 2), 80}, {IpAddr::v4(10, 0, 0, 1), 443}, {IpAddr::v4(10, 0, 0, 1), 80}};
    std::ranges::sort(sockets);
    EXPECT_EQ(sockets, (std::vector<SocketAddress>{{IpAddr::v4(10, 0, 0, 1), 80},
                                                   {IpAddr::v4(10, 0, 0, 1), 443},
                                                   {IpAddr::v4(10, 0, 0, 2), 80}}));
}

TEST(SocketAddress, HashDependsOnAddressAndPort) {
    std::unordered_set<size_t> hashes;
    for (uint8_t host = 0; host < 16; ++host) {
        for (L4Port port = 0; port < 16; ++port) {
            hashes.insert(std::hash<SocketAddress>{}({IpAddr::v4(10, 0, 0, host), port}));
        }
    }
    EXPECT_EQ(hashes.size(), 256u);
    EXPECT_EQ(std::hash<SocketAddress>{}({IpAddr::v4(10, 0, 0, 1), 80}),
              std::hash<SocketAddress>{}({IpAddr::v4(10, 0, 0, 1), 80}));
}

}  // namespace penstock
