// SPDX-License-Identifier: Apache-2.0
// Names for display.
#include "control/model/desired.hpp"

#include <gtest/gtest.h>

namespace penstock::model {
namespace desired_test {

TEST(ServiceKey, ReadsLikeAnAddress) {
    EXPECT_EQ((ServiceKey{.namespace_name = "default", .name = "web", .port_name = "http"}).to_string(),
              "default/web:http/TCP");
    EXPECT_EQ(
        (ServiceKey{.namespace_name = "kube-system", .name = "dns", .protocol = Protocol::Udp}).to_string(),
        "kube-system/dns/UDP");
}

TEST(ServiceKey, TellsPortsApartByNameAndProtocol_SVC007) {
    const ServiceKey http{.namespace_name = "default", .name = "web", .port_name = "http"};
    ServiceKey other = http;
    other.port_name = "https";
    EXPECT_NE(http, other);
    other = http;
    other.protocol = Protocol::Udp;
    EXPECT_NE(http, other);
}

TEST(GatewayMode, HasTheNamesOfTheOption) {
    EXPECT_STREQ(to_string(GatewayMode::Node), "node");
    EXPECT_STREQ(to_string(GatewayMode::External), "external");
}

}  // namespace desired_test
}  // namespace penstock::model
