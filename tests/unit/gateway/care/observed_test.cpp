// SPDX-License-Identifier: Apache-2.0
// Notices of the gateway itself: listeners of other programs, exhausted SNAT ports, and the merged list.
#include "control/gateway/care/observed.hpp"

#include <gtest/gtest.h>

#include <array>

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

TEST(AccessLogWatch, NamesServicesWhileTheyRequestWhatTheGatewayDoesNotWrite_ANN11_ANNG4) {
    const model::ServiceKey web{"default", "web", "http", Protocol::Tcp},
        dns{"default", "dns", "", Protocol::Udp};
    model::Service service;
    AccessLogWatch watch;
    watch.set(dns, &service);
    EXPECT_TRUE(watch.notices().empty());
    service.access_log.enabled = true;
    watch.set(web, &service);
    watch.set(web, &service);
    const auto notices = watch.notices();
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices[0].key, web);
    EXPECT_EQ(notices[0].notice.reason, "UnsupportedAnnotation");
    EXPECT_NE(notices[0].notice.message.find("--flow-log"), std::string::npos);
    service.access_log.enabled = false;
    watch.set(web, &service);
    EXPECT_TRUE(watch.notices().empty());
    service.access_log.enabled = true;
    watch.set(web, &service);
    watch.set(web, nullptr);
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
