// SPDX-License-Identifier: Apache-2.0
#include "control/host/socket_table.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/descriptor.hpp"
#include "tests/unit/host/fake_machine.hpp"

namespace penstock::host {
namespace socket_table_test {

TEST(SocketTable, ARowHasAddressPortStateAndInode) {
    const auto row = parse_socket_row(
        "   0: 0100007F:2391 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 "
        "0",
        IpFamily::V4);
    ASSERT_TRUE(row);
    EXPECT_EQ(*row, (SocketRow{IpAddr::v4(127, 0, 0, 1), 9105, kTcpListen, 12345}));
    EXPECT_EQ(parse_socket_row("   0: 0100007F:2391 00000000:0000 0A", IpFamily::V4)->inode, 0U);
    EXPECT_FALSE(parse_socket_row("  sl  local_address rem_address   st", IpFamily::V4));
    EXPECT_FALSE(parse_socket_row("   0: 0100007F:0000 00000000:0000 0A", IpFamily::V4));
}

// The kernel's own table names this process as the owner of its socket.
TEST(SocketTable, AListenerOfThisProcessIsFound) {
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(socket.get(), 1), 0);
    socklen_t size = sizeof(address);
    ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const Root root;
    const auto sockets = listening_sockets(root);
    ASSERT_TRUE(sockets);
    const auto mine = std::ranges::find(*sockets, ntohs(address.sin_port), &SocketRow::port);
    ASSERT_NE(mine, sockets->end());
    const auto owner = owner_of_socket(root, mine->inode);
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->pid, std::to_string(::getpid()));
}

TEST(SocketTable, AProcessIsFoundByItsName) {
    const test::FakeMachine fake;
    EXPECT_FALSE(find_process(fake.machine.root, "penstockd"));
    fake.file("/proc/self/comm", "penstockd\n");  // no number
    fake.file("/proc/7/comm", "bash\n");
    EXPECT_FALSE(find_process(fake.machine.root, "penstockd"));
    fake.file("/proc/9/comm", "penstockd\n");
    EXPECT_EQ(find_process(fake.machine.root, "penstockd")->pid, "9");
}

}  // namespace socket_table_test
}  // namespace penstock::host
