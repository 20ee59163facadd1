// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/kubeconfig.hpp"

#include <gtest/gtest.h>

#include "control/kube/client/base64.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::kube {
namespace kubeconfig_test {

using test::ScratchFolder;

// One file, in /etc/penstock, with the given user and cluster; the rest is valid.
std::string kubeconfig(const std::string& user,
                       const std::string& cluster = "server: https://api.example:6443") {
    return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
           "contexts: [{name: main, context: {cluster: c, user: u, namespace: edge}}]\n"
           "clusters: [{name: c, cluster: {" +
           cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

Result<ClientConfig> resolve(const std::string& text, std::string_view context = "") {
    const KubeconfigText file{.file = "/etc/penstock/kubeconfig", .text = text};
    return resolve_kubeconfig({&file, 1}, context);
}

TEST(Kubeconfig, ContextLeadsToClusterAndUser_AUTH001) {
    const auto config =
        resolve(kubeconfig("token: abc", "server: \"https://api.example:6443/\", tls-server-name: inner"));
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_EQ(config->origin, "context main of /etc/penstock/kubeconfig");
    EXPECT_EQ(config->server, "https://api.example:6443");
    EXPECT_EQ(config->tls_server_name, "inner");
    EXPECT_EQ(config->token.reveal(), "abc");
    EXPECT_EQ(config->namespace_name, "edge");
    EXPECT_FALSE(config->insecure_skip_tls_verify);
}

TEST(Kubeconfig, JsonIsYamlToo_AUTH001) {
    const auto config =
        resolve(R"({"current-context":"m","contexts":[{"name":"m","context":{"cluster":"c","user":"u"}}],
        "clusters":[{"name":"c","cluster":{"server":"https://[fd00::1]:6443"}}],"users":[{"name":"u","user":{"token":"t"}}]})");
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_EQ(config->server, "https://[fd00::1]:6443");
}

TEST(Kubeconfig, GivenContextBeatsTheCurrentOne_AUTH001) {
    const std::string text =
        kubeconfig("token: abc") + "preferences: {}\n";  // ignored, like all fields that are not read
    EXPECT_TRUE(resolve(text, "main"));
    const auto other = resolve(text, "other");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().what, "/etc/penstock/kubeconfig: context other does not exist; existing: main");
}

TEST(Kubeconfig, DataBeatsFileAndPathsAreRelativeToTheirFile_AUTH001) {
    const std::string data = base64_encoded("-----BEGIN CERTIFICATE-----");
    const auto both = resolve(
        kubeconfig("client-certificate: pki/me.crt, client-key: /abs/me.key",
                   "server: https://a, certificate-authority: ca.crt, certificate-authority-data: " + data));
    ASSERT_TRUE(both) << both.error().what;
    EXPECT_EQ(both->ca.data.reveal(), "-----BEGIN CERTIFICATE-----");
    EXPECT_TRUE(both->ca.file.empty());
    EXPECT_EQ(both->client_certificate.file, "/etc/penstock/pki/me.crt");
    EXPECT_EQ(both->client_key.file, "/abs/me.key");
}

TEST(Kubeconfig, TokenFileStandsBesideTheToken_AUTH002) {
    const auto config = resolve(kubeconfig("token: inline, tokenFile: ../token"));
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_EQ(config->token_file, "/etc/token");
    EXPECT_EQ(config->token.reveal(), "inline");
}

TEST(Kubeconfig, FirstDefinitionOfSeveralFilesWins_AUTH001) {
    const std::vector<KubeconfigText> files = {
        {.file = "/one/config",
         .text = "clusters: [{name: c, cluster: {server: https://first, certificate-authority: ca.crt}}]\n"},
        {.file = "/empty/config", .text = ""},
        {.file = "/two/config", .text = kubeconfig("token: second", "server: https://second")},
        {.file = "/three/config", .text = kubeconfig("token: third", "server: https://third") + "#\n"}};
    const auto config = resolve_kubeconfig(files, "");
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_EQ(config->server, "https://first");
    EXPECT_EQ(config->ca.file, "/one/ca.crt");
    EXPECT_EQ(config->token.reveal(), "second");
}

TEST(Kubeconfig, UnusedEntriesMayBeBroken_AUTH001) {
    const auto config = resolve(
        "current-context: m\ncontexts: [{name: m, context: {cluster: c, user: u}}, {name: x}, 7]\n"
        "clusters: [{name: c, cluster: {server: https://a}}, {name: broken, cluster: [1]}]\n"
        "users: [{name: old, user: {username: a, password: b}}, {name: u, user: {token: t}}, {name: bad, "
        "user: {client-key-data: '%'}}]\n");
    EXPECT_TRUE(config) << config.error().what;
}

TEST(Kubeconfig, NoUserIsAnonymous_AUTH001) {
    const auto config = resolve(
        "current-context: m\ncontexts: [{name: m, context: {cluster: c}}]\nclusters: [{name: c, cluster: "
        "{server: http://a:1}}]\n");
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_TRUE(config->token.is_empty());
}

struct Mistake {
    const char* name;
    std::string text;
    std::string expected;  // the error's whole text
};

TEST(Kubeconfig, EachMistakeIsNamed_AUTH001_AUTH008) {
    const std::string file = "/etc/penstock/kubeconfig";
    const std::string user = file + ": user u: ";
    const std::string cluster = file + ": cluster c: ";
    const Mistake mistakes[] = {
        {"empty", "", file + ": no current-context, and no --context; existing contexts: none"},
        {"no current context", "contexts: [{name: b}, {name: a}]",
         file + ": no current-context, and no --context; existing contexts: a, b"},
        {"dangling context", "current-context: gone", file + ": context gone does not exist; existing: none"},
        {"not yaml", "contexts: [", file + ": line 1: not YAML: end of sequence flow not found"},
        {"not a map", "- a", file + ": not a kubeconfig: must be a map"},
        {"another kind", "kind: Service", file + ": not a kubeconfig: kind must be Config"},
        {"list is none", "clusters: 7", file + ": clusters must be a list"},
        {"no cluster named", "current-context: m\ncontexts: [{name: m, context: {user: u}}]",
         "context m of " + file + ": has no cluster"},
        {"no such cluster", "current-context: m\ncontexts: [{name: m, context: {cluster: x}}]",
         "context m of " + file + ": its cluster x does not exist; existing: none"},
        {"no such user",
         "current-context: m\ncontexts: [{name: m, context: {cluster: c, user: x}}]\nclusters: [{name: c, "
         "cluster: {server: https://a}}]",
         "context m of " + file + ": its user x does not exist; existing: none"},
        {"no server", kubeconfig("token: t", "tls-server-name: a"), cluster + "has no server"},
        {"server without scheme", kubeconfig("token: t", "server: 'api:6443'"),
         cluster + "server must start with https:// or http://"},
        {"server with a user", kubeconfig("token: t", "server: 'https://a:b@api'"),
         cluster + "server must be a URL without user, query or white space"},
        {"bad CA", kubeconfig("token: t", "server: https://a, certificate-authority-data: '%%%'"),
         cluster + "certificate-authority-data is not base64"},
        {"CA and insecure",
         kubeconfig("token: t",
                    "server: https://a, certificate-authority: x, insecure-skip-tls-verify: true"),
         cluster + "certificate-authority and insecure-skip-tls-verify are mutually exclusive"},
        {"bad flag", kubeconfig("token: t", "server: https://a, insecure-skip-tls-verify: maybe"),
         cluster + "insecure-skip-tls-verify must be true or false"},
        {"bad key", kubeconfig("client-certificate: a, client-key-data: QUJD="),
         user + "client-key-data is not base64"},
        {"key alone", kubeconfig("client-key: a"), user + "client-key without client-certificate"},
        {"certificate alone", kubeconfig("client-certificate: a"),
         user + "client-certificate without client-key"},
        {"token is a list", kubeconfig("token: [a]"), user + "token must be a string"},
        {"password", kubeconfig("username: admin, password: hunter2"),
         user + "username and password were removed in Kubernetes 1.19: use token, tokenFile, a client "
                "certificate or an exec plugin"},
        {"auth-provider", kubeconfig("auth-provider: {name: gcp, config: {access-token: hunter2}}"),
         user +
             "auth-provider gcp was removed in Kubernetes 1.26: use the exec plugin gke-gcloud-auth-plugin"},
        {"groups alone", kubeconfig("token: t, as-groups: [g]"),
         user + "as-uid, as-groups and as-user-extra need as"},
        {"exec version", kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"),
         user + "exec: apiVersion must be client.authentication.k8s.io/v1 or "
                "client.authentication.k8s.io/v1beta1"},
        {"exec command", kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1}"),
         user + "exec: has no command"},
        {"exec mode",
         kubeconfig(
             "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}"),
         user + "exec: interactiveMode Always is not supported, because this program has no terminal; use "
                "IfAvailable or Never"},
        {"exec env",
         kubeconfig(
             "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{value: hunter2}]}"),
         user + "exec: env: an entry needs a name without '='"},
    };
    for (const Mistake& mistake : mistakes) {
        const auto config = resolve(mistake.text);
        ASSERT_FALSE(config) << mistake.name;
        EXPECT_EQ(config.error().what, mistake.expected) << mistake.name;
        EXPECT_EQ(config.error().what.find("hunter2"), std::string::npos) << mistake.name;  // AUTH-009
    }
}

TEST(Kubeconfig, ExecStanzaIsReadWhole_AUTH007) {
    const auto config = resolve(
        kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/login, args: "
                   "[--cluster, 'a b'], env: "
                   "[{name: A, value: '1'}], "
                   "installHint: install it, provideClusterInfo: true, interactiveMode: IfAvailable}"));
    ASSERT_TRUE(config) << config.error().what;
    ASSERT_TRUE(config->exec);
    EXPECT_EQ(config->exec->command, "/etc/penstock/bin/login");
    EXPECT_EQ(config->exec->args, (std::vector<std::string>{"--cluster", "a b"}));
    EXPECT_EQ(config->exec->env.at(0).second.reveal(), "1");
    EXPECT_EQ(config->exec->install_hint, "install it");
    EXPECT_TRUE(config->exec->provide_cluster_info);
    const auto by_path =
        resolve(kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1, command: login}"));
    ASSERT_TRUE(by_path) << by_path.error().what;
    EXPECT_EQ(by_path->exec->command, "login");  // found by PATH, not relative to the folder
}

TEST(Kubeconfig, ProxyAndImpersonationAreHonoured_AUTH008) {
    const auto config = resolve(
        kubeconfig("token: t, as: jane, as-uid: '7', as-groups: [dev, ops], as-user-extra: {scope: [a, b]}",
                   "server: https://a, proxy-url: 'http://proxy:3128'"));
    ASSERT_TRUE(config) << config.error().what;
    EXPECT_EQ(config->proxy_url.reveal(), "http://proxy:3128");
    EXPECT_EQ(config->impersonate, (Impersonation{"jane", "7", {"dev", "ops"}, {{"scope", {"a", "b"}}}}));
}

TEST(Kubeconfig, UnreadableFileIsAStartUpError_AUTH001) {
    const ScratchFolder folder;
    const auto missing = read_kubeconfig({folder.path() / "none"}, "");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().what,
              "kubeconfig: " + (folder.path() / "none").string() + ": No such file or directory");
    EXPECT_EQ(missing.error().code, Errc::NotFound);
    const auto directory = read_kubeconfig({folder.path()}, "");
    ASSERT_FALSE(directory);
    EXPECT_EQ(directory.error().what, "kubeconfig: " + folder.path().string() + ": Is a directory");
    const auto endless = read_kubeconfig({"/dev/zero"}, "");
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error().what, "kubeconfig: /dev/zero: larger than 4194304 bytes");
    EXPECT_FALSE(read_kubeconfig({}, ""));
}

}  // namespace kubeconfig_test
}  // namespace penstock::kube
