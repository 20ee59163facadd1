// SPDX-License-Identifier: Apache-2.0
// The configuration that a Pod finds.
#include "control/kube/client/in_cluster.hpp"

#include <gtest/gtest.h>

#include "control/kube/client/kubeconfig.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::kube {
namespace in_cluster_test {

using test::ScratchFolder;

// One file, in /etc/penstock, with the given user and cluster; the rest is valid.
std::string kubeconfig(const std::string& user,
                       const std::string& cluster = "server: https://api.example:6443") {
    return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
           "contexts: [{name: main, context: {cluster: c, user: u, namespace: edge}}]\n"
           "clusters: [{name: c, cluster: {" +
           cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

TEST(InCluster, EnvironmentAndServiceAccount_AUTH003) {
    const ScratchFolder folder;
    std::map<std::string, std::string> variables = {{"KUBERNETES_SERVICE_HOST", "fd00::1"},
                                                    {"KUBERNETES_SERVICE_PORT", "443"}};
    const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    const auto no_account = in_cluster_config(environment, folder.path());
    ASSERT_FALSE(no_account);
    EXPECT_EQ(no_account.error().code, Errc::NotFound);

    folder.write("token", "t");
    folder.write("ca.crt", "c");
    folder.write("namespace", "edge\n");
    const auto config = in_cluster_config(environment, folder.path());
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_EQ(config->server, "https://[fd00::1]:443");
    EXPECT_EQ(config->token_file, folder.path() / "token");
    EXPECT_EQ(config->ca.file, folder.path() / "ca.crt");
    EXPECT_EQ(config->namespace_name, "edge");

    variables["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
    EXPECT_EQ(in_cluster_config(environment, folder.path())->server, "https://10.0.0.1:443");
    variables.erase("KUBERNETES_SERVICE_PORT");
    const auto outside = in_cluster_config(environment, folder.path());
    ASSERT_FALSE(outside);
    EXPECT_EQ(outside.error().what,
              "not inside a cluster: KUBERNETES_SERVICE_PORT is not set; outside a cluster pass "
              "--kubeconfig");
}

}  // namespace in_cluster_test
}  // namespace penstock::kube
