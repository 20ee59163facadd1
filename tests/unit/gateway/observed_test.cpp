// SPDX-License-Identifier: Apache-2.0
// Notices of the gateway itself: listeners of other programs, exhausted SNAT ports, and the merged list.
#include "control/gateway/care/observed.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "desired_builder.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::gateway {
namespace observed_test {

using namespace std::chrono_literals;

std::vector<std::string> texts(const std::vector<model::ObservedNotice>& notices) {
    std::vector<std::string> out;
    for (const auto& observed : notices) {
        out.push_back(observed.key.name + " " + observed.notice.reason);
    }
    return out;
}

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

TEST(NodePortWatch, AListenerOnANodePortIsToldOnceForEachOwner_NODEPORT010) {
    NodePortWatch watch;
    const auto web =
        service("web", {node_port(30080), node_port(30080, IpFamily::V6), external("192.0.2.1", 30081)}, {});
    watch.set(web.key, &web);
    EXPECT_TRUE(watch.take_changed());
    EXPECT_FALSE(watch.take_changed());
    const std::array strangers{LocalListener{Protocol::Tcp, ip("0.0.0.0"), 30080},
                               LocalListener{Protocol::Tcp, ip("::"), 30080}};
    watch.look(strangers);
    EXPECT_EQ(texts(watch.notices()), std::vector<std::string>{"web NodePortInUse"});
    EXPECT_NE(watch.notices()[0].notice.message.find("30080/TCP"), std::string::npos);

    const std::array others{
        LocalListener{Protocol::Udp, ip("0.0.0.0"), 30080},   // another protocol
        LocalListener{Protocol::Tcp, ip("0.0.0.0"), 30081}};  // a number that is not a NodePort
    watch.look(others);
    EXPECT_TRUE(watch.notices().empty());

    watch.look(strangers);
    watch.set(web.key, nullptr);
    EXPECT_TRUE(watch.take_changed());
    watch.look(strangers);
    EXPECT_TRUE(watch.notices().empty()) << "the Service has gone";
}

TEST(ExhaustionWatch, NamesTheServicePortUntilTenMinutesHavePassedWithout_NAT002) {
    ExhaustionWatch watch;
    ExhaustionWatch::Time now{1h};
    watch.met(key("web"), now);
    now += 9min;
    watch.met(key("web"), now);
    watch.met(key("dns", Protocol::Udp), now - 5min);
    watch.work(now);
    EXPECT_EQ(texts(watch.notices()),
              (std::vector<std::string>{"dns SNATPortExhausted", "web SNATPortExhausted"}));
    EXPECT_NE(watch.notices()[1].notice.message.find("default/web/TCP"), std::string::npos);
    now += 5min;
    watch.work(now);
    EXPECT_EQ(texts(watch.notices()), std::vector<std::string>{"web SNATPortExhausted"});
    now += 5min;
    watch.work(now);
    EXPECT_TRUE(watch.notices().empty());
}

TEST(ObservedNotices, AreSortedUniqueAndBounded) {
    const model::ObservedNotice b{key("b"), {model::Notice::Level::Warning, "R", "m"}};
    const model::ObservedNotice a{key("a"), {model::Notice::Level::Warning, "R", "m"}};
    const std::array lists{std::vector{b, a}, std::vector{a}};
    EXPECT_EQ(merged(lists), (std::vector{a, b}));
    std::vector<model::ObservedNotice> many;
    for (size_t i = 0; i < 2 * model::kObservedMax; ++i) {
        many.push_back({key("s" + std::to_string(i)), b.notice});
    }
    EXPECT_EQ(merged(std::array{many}).size(), model::kObservedMax);
}

}  // namespace observed_test
}  // namespace penstock::gateway
