// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/xdp_sockets.hpp"

#include <linux/if_xdp.h>
#include <sys/socket.h>

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

XdpSockets count_xdp_sockets() {
    XdpSockets found;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unreadable)) {
        const std::string name = entry.path().filename();
        int fd = -1;
        std::from_chars(name.data(), name.data() + name.size(), fd);
        int domain = 0;
        xdp_options options{};
        if (ask(fd, SOL_SOCKET, SO_DOMAIN, domain) && domain == kAfXdp &&
            ask(fd, kSolXdp, XDP_OPTIONS, options)) {
            ++found.all;
            found.zero_copy += (options.flags & XDP_OPTIONS_ZEROCOPY) != 0 ? 1 : 0;
        }
    }
    return found;
}

}  // namespace penstock::drivers
