// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/memif_socket.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace penstock::drivers {
namespace {

// Defaults of drivers/net/memif/rte_eth_memif.h.
constexpr const char* kNameByDefault = "/run/memif.sock";

// Name of a listening Unix socket; empty: `fd` is something else.
std::optional<MemifSocket> listener_at(int fd) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    sockaddr_un address{};
    socklen_t length = sizeof(address);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
        address.sun_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path)) {
        return std::nullopt;
    }
    const std::string_view text(address.sun_path, std::min<size_t>(length - offsetof(sockaddr_un, sun_path),
                                                                   sizeof(address.sun_path)));
    const bool is_abstract = text.front() == '\0';
    const std::string_view name = text.substr(is_abstract ? 1 : 0);
    return MemifSocket{.name = std::string(name.substr(0, name.find('\0'))), .is_abstract = is_abstract};
}

bool has_listener(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        return true;  // the driver refuses it
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const int client = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool is_refused =
        client >= 0 && connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
        errno == ECONNREFUSED;
    close(client);
    return !is_refused;
}

}  // namespace

std::optional<MemifSocket> memif_listener_of(const DeviceString& device) {
    const std::string* const role = device.argument("role");
    if (device.driver != "net_memif" || role == nullptr || (*role != "server" && *role != "master")) {
        return std::nullopt;
    }
    const std::string* const name = device.argument("socket");
    const std::string* const abstract = device.argument("socket-abstract");
    return MemifSocket{.name = name == nullptr ? kNameByDefault : *name,
                       .is_abstract = abstract == nullptr || *abstract != "no"};
}

// EAL's interrupt thread still watches the number, and would abort the process if it were not open. It gets
// an object that never becomes readable.
void close_left_open(const MemifSocket& socket) {
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unreadable)) {
        const std::string name = entry.path().filename();
        int fd = -1;
        std::from_chars(name.data(), name.data() + name.size(), fd);
        if (listener_at(fd) == socket) {
            if (const int silent = eventfd(0, EFD_CLOEXEC); silent >= 0) {
                dup3(silent, fd, O_CLOEXEC);
                close(silent);
            }
            return;
        }
    }
}

void remove_stale_file(const MemifSocket& socket) {
    struct stat facts{};
    if (!socket.is_abstract && lstat(socket.name.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode) &&
        !has_listener(socket.name)) {
        unlink(socket.name.c_str());
    }
}

}  // namespace penstock::drivers
