// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/xdp_sockets.hpp"

#include <linux/if_xdp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

namespace penstock::drivers {
namespace {

constexpr int kSolXdp = 283;  // SOL_XDP and AF_XDP of linux/socket.h, which is not a user-space header
constexpr int kAfXdp = 44;

template <typename Option>
bool ask(int fd, int level, int name, Option& answer) {
    socklen_t length = sizeof(answer);
    return getsockopt(fd, level, name, &answer, &length) == 0 && length == sizeof(answer);
}

}  // namespace

std::vector<XdpSocket> xdp_sockets() {
    std::vector<XdpSocket> found;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unreadable)) {
        const std::string name = entry.path().filename();
        int fd = -1;
        std::from_chars(name.data(), name.data() + name.size(), fd);
        int domain = 0;
        xdp_options options{};
        struct stat facts{};
        if (ask(fd, SOL_SOCKET, SO_DOMAIN, domain) && domain == kAfXdp &&
            ask(fd, kSolXdp, XDP_OPTIONS, options) && fstat(fd, &facts) == 0) {
            found.push_back({fd, facts.st_ino, (options.flags & XDP_OPTIONS_ZEROCOPY) != 0});
        }
    }
    return found;
}

std::vector<XdpSocket> xdp_sockets_since(std::span<const XdpSocket> before) {
    std::vector<XdpSocket> found = xdp_sockets();
    std::erase_if(found, [&](const XdpSocket& socket) {
        return std::ranges::find(before, socket.inode, &XdpSocket::inode) != before.end();
    });
    return found;
}

void close_left_open(std::span<const XdpSocket> sockets) {
    for (const XdpSocket& socket : sockets) {
        struct stat facts{};
        if (fstat(socket.fd, &facts) == 0 && facts.st_ino == socket.inode) {
            close(socket.fd);
        }
    }
}

}  // namespace penstock::drivers
