// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/messages.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace penstock::gateway {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kDescriptorsMax * sizeof(int));

}  // namespace

Status send_message(int socket, UpgradeMessage message, const v1::UpgradeNote& note,
                    std::span<const int> descriptors) {
    std::string bytes(1, static_cast<char>(message));
    if (!note.AppendToString(&bytes) || bytes.size() > kMessageMax) {
        return fail(Errc::Exhausted,
                    "upgrade: a message of " + std::to_string(bytes.size()) + " bytes is not sent");
    }
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, kControlBytes> control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    const size_t count = std::min(descriptors.size(), kDescriptorsMax);
    if (count > 0) {
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(rights), descriptors.data(), count * sizeof(int));
    }
    ssize_t sent = 0;
    do {
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent != static_cast<ssize_t>(bytes.size())) {
        return fail(Errc::Unavailable, std::string("upgrade: message: ") + std::strerror(errno));
    }
    return {};
}

std::optional<UpgradeMessage> next_message(int socket) {
    char kind = 0;
    if (recv(socket, &kind, 1, MSG_PEEK | MSG_DONTWAIT) != 1) {
        return std::nullopt;
    }
    return static_cast<UpgradeMessage>(kind);
}

std::optional<ReceivedMessage> receive_message(int socket) {
    std::string bytes(kMessageMax, '\0');
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, kControlBytes> control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t got = 0;
    do {
        got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 1) {
        return std::nullopt;
    }
    ReceivedMessage received;
    received.message = static_cast<UpgradeMessage>(bytes.front());
    const bool is_whole = (header.msg_flags & MSG_TRUNC) == 0;
    if (!is_whole || !received.note.ParseFromArray(bytes.data() + 1, static_cast<int>(got - 1))) {
        received.note.Clear();
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
            received.descriptors.emplace_back(fd);
        }
    }
    return received;
}

}  // namespace penstock::gateway
