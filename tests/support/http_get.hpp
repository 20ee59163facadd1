// SPDX-License-Identifier: Apache-2.0
// One HTTP request to loopback and its whole answer.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace penstock::test {

// A connection to 127.0.0.1; the caller closes it.
[[nodiscard]] inline int connect_to(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return fd;
}

// Reads until the other end closes, then closes `fd` too. "" if nothing was received.
[[nodiscard]] inline std::string read_all(int fd) {
    std::string answer;
    char chunk[4096];
    for (ssize_t got = 0; (got = read(fd, chunk, sizeof(chunk))) > 0;) {
        answer.append(chunk, static_cast<size_t>(got));
    }
    close(fd);
    return answer;
}

// Sends `request` unchanged; "" if the other end closed without an answer.
[[nodiscard]] inline std::string http_exchange(uint16_t port, const std::string& request) {
    const int fd = connect_to(port);
    // The other end may close before it has read all of a request that it refuses.
    for (size_t sent = 0; sent < request.size();) {
        const ssize_t now = send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
        if (now <= 0) {
            break;
        }
        sent += static_cast<size_t>(now);
    }
    return read_all(fd);
}

[[nodiscard]] inline std::string http_get(uint16_t port, const std::string& path,
                                          const std::string& method = "GET") {
    return http_exchange(port,
                         method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

}  // namespace penstock::test
