// SPDX-License-Identifier: Apache-2.0
// Ports of Linux's own sockets.
#include "control/gateway/care/local_sockets.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "desired_builder.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::gateway {
namespace local_sockets_test {

struct LineCase {
    const char* line;
    Protocol protocol;
    IpFamily family;
    const char* listener;  // "" none
};
constexpr LineCase kLines[] = {
    {"   0: 00000000:7580 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1",
     Protocol::Tcp, IpFamily::V4, "0.0.0.0 30080"},
    {"  12: 0158500A:7580 00000000:0000 0A 00000000:00000000", Protocol::Tcp, IpFamily::V4,
     "10.80.88.1 30080"},
    {"   1: 0100007F:7580 00000000:0000 0A 00000000:00000000", Protocol::Tcp, IpFamily::V4, ""},  // loopback
    {"   2: 0158500A:7580 0258500A:C350 01 00000000:00000000", Protocol::Tcp, IpFamily::V4,
     ""},  // established
    {"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when", Protocol::Tcp, IpFamily::V4, ""},
    {"   3: 00000000000000000000000000000000:7580 00000000000000000000000000000000:0000 0A", Protocol::Tcp,
     IpFamily::V6, ":: 30080"},
    {"   3: 00000000000000000000000001000000:7580 00000000000000000000000000000000:0000 0A", Protocol::Tcp,
     IpFamily::V6, ""},  // ::1
    {"   3: 0000000000000000FFFF00000100007F:7580 00000000000000000000000000000000:0000 0A", Protocol::Tcp,
     IpFamily::V6, ""},
    {"   3: 0000000000000000FFFF00000158500A:7580 00000000000000000000000000000000:0000 0A", Protocol::Tcp,
     IpFamily::V6, "10.80.88.1 30080"},
    {"   3: B80D0120000000000000000001000000:7580 00000000000000000000000000000000:0000 0A", Protocol::Tcp,
     IpFamily::V6, "2001:db8::1 30080"},
    {" 1234: 00000000:7580 00000000:0000 07 00000000:00000000", Protocol::Udp, IpFamily::V4, "0.0.0.0 30080"},
    {" 1234: 00000000:7580 0258500A:0035 01 00000000:00000000", Protocol::Udp, IpFamily::V4,
     ""},  // connected
    {" 1234: 00000000:0000 00000000:0000 07 00000000:00000000", Protocol::Udp, IpFamily::V4,
     ""},  // not bound
    {"", Protocol::Tcp, IpFamily::V4, ""},
    {"   0: 00000000 00000000:0000 0A", Protocol::Tcp, IpFamily::V4, ""},
    {"   0: 0000000:7580 00000000:0000 0A", Protocol::Tcp, IpFamily::V4, ""},
    {"   0: 00000000:17580 00000000:0000 0A", Protocol::Tcp, IpFamily::V4, ""},
    {"   0: 00000000:7580 00000000:0000", Protocol::Tcp, IpFamily::V4, ""},
};

TEST(LocalSockets, LinesOfProcNet_NODEPORT010) {
    for (const auto& each : kLines) {
        const auto listener = parse_socket_line(each.line, each.protocol, each.family);
        EXPECT_EQ(listener ? listener->address.to_string() + " " + std::to_string(listener->port) : "",
                  each.listener)
            << each.line;
        if (listener) {
            EXPECT_EQ(listener->protocol, each.protocol);
        }
    }
}

TEST(LocalSockets, AllFourFilesAreReadAndMissingOnesAreEmpty_NODEPORT010) {
    const test::ScratchFolder folder;
    std::ofstream(folder.path() / "tcp") << "  sl  local_address\n   0: 00000000:0050 00000000:0000 0A\n   "
                                            "1: 0100007F:0051 00000000:0000 0A\n";
    std::ofstream(folder.path() / "udp6")
        << "  sl  local_address\n   0: 00000000000000000000000000000000:0035 "
           "00000000000000000000000000000000:0000 07\n";
    const auto listeners = local_listeners(folder.path());
    ASSERT_EQ(listeners.size(), 2U);
    EXPECT_EQ(listeners[0], (LocalListener{Protocol::Tcp, ip("0.0.0.0"), 80}));
    EXPECT_EQ(listeners[1], (LocalListener{Protocol::Udp, ip("::"), 53}));
}

}  // namespace local_sockets_test
}  // namespace penstock::gateway
