// SPDX-License-Identifier: Apache-2.0
#include "control/sync/config_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manifest/temporary_folder.hpp"

namespace penstock::sync {
namespace config_check_test {

constexpr const char* kService = R"(apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, ports: [{port: 80}]}
)";

std::string pool(const std::string& name, const std::string& addresses) {
    return "apiVersion: penstock.io/v1alpha1\nkind: AddressPool\nmetadata: {name: " + name +
           "}\nspec: {addresses: [\"" + addresses + "\"]}\n---\n";
}

class ConfigCheck : public testing::Test {
 protected:
    ConfigCheck() {
        manifests_.write("web.yaml", kService);
        options_.manifests = manifests_.path();
        options_.allocate_addresses = true;
        options_.address_pools = pools_.path();
        options_.allocation_file = (manifests_.path() / "addresses.json").string();
    }

    test::TemporaryFolder manifests_, pools_;
    Options options_;
};

TEST_F(ConfigCheck, ValidFilesHaveNoMistake) {
    EXPECT_EQ(mistakes_in(options_), std::vector<std::string>()) << "an empty folder of pools is valid";
    pools_.write("pools.yaml", pool("a", "192.0.2.0/28") + pool("b", "198.51.100.0/24"));
    EXPECT_EQ(mistakes_in(options_), std::vector<std::string>());
}

TEST_F(ConfigCheck, EachBadPoolIsNamedWithItsRule_LB015) {
    pools_.write("pools.yaml", pool("good", "192.0.2.0/28") + pool("overlaps", "192.0.2.8-192.0.2.9") +
                                   pool("pods", "10.244.1.0/24"));
    pools_.write("typo.yaml", pool("reversed", "198.51.100.9-198.51.100.1"));
    options_.pools_exclude = {Prefix::parse("10.244.0.0/16").value()};
    EXPECT_THAT(
        mistakes_in(options_),
        testing::ElementsAre(
            testing::AllOf(testing::StartsWith("--address-pools: typo.yaml:"),
                           testing::HasSubstr("AddressPool reversed"),
                           testing::HasSubstr("the last address is below the first one")),
            "--address-pools: pool \"overlaps\": addresses: 192.0.2.8-192.0.2.9 overlaps "
            "192.0.2.0-192.0.2.15 "
            "of pool \"good\"",
            "--address-pools: pool \"pods\": addresses: 10.244.1.0-10.244.1.255 overlaps 10.244.0.0/16 "
            "(--address-pools-exclude)"));
}

TEST_F(ConfigCheck, EachBadManifestIsNamed) {
    manifests_.write("bad.yaml",
                     "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: \"80\"}]}\n");
    EXPECT_THAT(mistakes_in(options_),
                testing::ElementsAre(testing::AllOf(testing::StartsWith("--manifests: bad.yaml:"),
                                                    testing::HasSubstr("Service default/x"))));
}

TEST_F(ConfigCheck, MissingFilesAreNamedByTheirOptions) {
    options_.manifests = "/nonexistent/manifests";
    options_.address_pools = "/nonexistent/pools";
    options_.external_ip_policy = "/nonexistent/policy.yaml";
    options_.monitor.socket = "/nonexistent/sync.sock";
    options_.monitor.socket_is_wanted = true;
    EXPECT_THAT(mistakes_in(options_),
                testing::ElementsAre("--manifests: no such file or folder: /nonexistent/manifests",
                                     "--address-pools: no such file or folder: /nonexistent/pools",
                                     testing::StartsWith("--external-ip-policy: "),
                                     "--listen: /nonexistent/sync.sock: no such folder: /nonexistent"));
}

}  // namespace config_check_test
}  // namespace penstock::sync
