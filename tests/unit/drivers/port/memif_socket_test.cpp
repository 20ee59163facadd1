// SPDX-License-Identifier: Apache-2.0
// The socket of net_memif as a server, which its driver does not close.
#include "drivers/port/memif_socket.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/scratch_folder.hpp"

namespace penstock::drivers {
namespace memif_socket_test {

std::optional<MemifSocket> listener_of(const char* device) {
    return memif_listener_of(*DeviceString::parse(device));
}

TEST(MemifListener, IsThatOfAServer) {
    EXPECT_FALSE(listener_of("net_memif0,role=client,socket=/run/x"));
    EXPECT_FALSE(listener_of("net_memif0,socket=/run/x")) << "a client, unless it has a role";
    EXPECT_FALSE(listener_of("net_tap0,role=server"));
    EXPECT_FALSE(listener_of("0000:03:00.0"));
    EXPECT_EQ(listener_of("net_memif0,role=server"), (MemifSocket{"/run/memif.sock", true}));
    EXPECT_EQ(listener_of("net_memif0,role=server,socket=/x,socket-abstract=yes"), (MemifSocket{"/x", true}));
    EXPECT_EQ(listener_of("net_memif0,role=server,socket-abstract=no,socket=/x"), (MemifSocket{"/x", false}));
}

// As memif_socket_create() of the driver makes it. -1: the name is in use.
int listen_as_the_driver(const MemifSocket& socket) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socklen_t length = sizeof(address);
    std::memcpy(address.sun_path + (socket.is_abstract ? 1 : 0), socket.name.data(), socket.name.size());
    if (socket.is_abstract) {
        length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket.name.size());
    }
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0 || listen(fd, 1) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

TEST(MemifListener, IsClosedForTheNextProcess) {
    const test::ScratchFolder folder;
    for (const bool is_abstract : {true, false}) {
        const MemifSocket socket{folder.path() / "memif.sock", is_abstract};
        const MemifSocket another{folder.path() / "memif.sock.2", is_abstract};
        const int fd = listen_as_the_driver(socket), other_fd = listen_as_the_driver(another);
        ASSERT_GE(fd, 0);
        ASSERT_GE(other_fd, 0);
        ASSERT_EQ(listen_as_the_driver(socket), -1) << "the name is in use";
        std::filesystem::remove(socket.name);  // the driver does that
        close_left_open(socket);
        const int next = listen_as_the_driver(socket);
        EXPECT_GE(next, 0) << (is_abstract ? "abstract" : "path");
        EXPECT_EQ(listen_as_the_driver(another), -1) << "another one stays";
        pollfd old{.fd = fd, .events = POLLIN, .revents = 0};
        EXPECT_EQ(poll(&old, 1, 0), 0) << "its number is open, and never ready";
        for (const int open : {fd, other_fd, next}) {
            close(open);
        }
        std::filesystem::remove(socket.name);
        std::filesystem::remove(another.name);
    }
    close_left_open({folder.path() / "none", true});
}

TEST(MemifListener, FileOfAKilledProcessIsRemoved) {
    const test::ScratchFolder folder;
    const MemifSocket socket{folder.path() / "memif.sock", false};
    remove_stale_file(socket);
    const int fd = listen_as_the_driver(socket);
    ASSERT_GE(fd, 0);
    remove_stale_file(socket);
    EXPECT_TRUE(std::filesystem::exists(socket.name)) << "a process listens on it";
    close(fd);
    ASSERT_EQ(listen_as_the_driver(socket), -1) << "the file is in the way";
    remove_stale_file({socket.name, true});
    EXPECT_TRUE(std::filesystem::exists(socket.name)) << "an abstract name is no path";
    remove_stale_file(socket);
    EXPECT_FALSE(std::filesystem::exists(socket.name));
    std::ofstream(socket.name) << "a file of another kind";
    remove_stale_file(socket);
    EXPECT_TRUE(std::filesystem::exists(socket.name));
}

}  // namespace memif_socket_test
}  // namespace penstock::drivers
