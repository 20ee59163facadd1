// SPDX-License-Identifier: Apache-2.0
// A TCP port of loopback that was free at the time of the call, for servers started by a test.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace penstock::test {

[[nodiscard]] inline uint16_t free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(at);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length), 0);
    close(fd);
    return ntohs(at.sin_port);
}

}  // namespace penstock::test
