// One HTTP request to loopback, and everything that came back.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace penstock::test {

// A connection to 127.0.0.1; closed by whoever gets it.
[[nodiscard]] inline int connect_to(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return fd;
}

// Until the other end closes; then `fd` is closed, too. "" where it closed without a word.
[[nodiscard]] inline std::string read_all(int fd) {
    std::string answer;
    char chunk[4096];
    for (ssize_t got = 0; (got = read(fd, chunk, sizeof(chunk))) > 0;) {
        answer.append(chunk, static_cast<size_t>(got));
    }
    close(fd);
    return answer;
}

// `request` as it stands; "" where the other end closed without a word.
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
