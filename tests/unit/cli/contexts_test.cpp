// SPDX-License-Identifier: Apache-2.0
#include "control/cli/contexts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/cli/exit_code.hpp"
#include "control/cli/options.hpp"
#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli {
namespace contexts_test {

using Words = std::vector<std::string>;

constexpr const char* kFile = R"(
context = edge-2            # the default
tls-ca = ca.pem
tls-cert = /etc/penstock/admin.pem
tls-key = admin.key

[edge-1]
gateway = 192.0.2.1:9106
[edge.2_x]
gateway = unix:/run/penstock/two.sock
sync-server = unix:/run/penstock/sync.sock
[edge-2]
tls-cert = own.pem
gateway = [2001:db8::1]:9106
)";

TEST(Contexts, KeysBeforeTheFirstSectionApplyToAllAndPathsBeginAtTheFile) {
    const auto contexts = parse_contexts(kFile, "/home/a/contexts.ini");
    ASSERT_TRUE(contexts) << contexts.error().what;
    EXPECT_EQ(contexts->chosen, "edge-2");
    ASSERT_EQ(contexts->list.size(), 3u);
    EXPECT_EQ(contexts->list[0].name, "edge-1");
    EXPECT_EQ(contexts->list[0].gateway.text, "192.0.2.1:9106");
    EXPECT_FALSE(contexts->list[0].sync_server);
    EXPECT_EQ(contexts->list[0].tls.authority, "/home/a/ca.pem");
    EXPECT_EQ(contexts->list[0].tls.certificate, "/etc/penstock/admin.pem");
    EXPECT_EQ(contexts->list[1].name, "edge.2_x");
    EXPECT_EQ(contexts->list[1].sync_server.value().text, "unix:/run/penstock/sync.sock");
    EXPECT_EQ(contexts->list[2].tls.certificate, "/home/a/own.pem");
    EXPECT_EQ(contexts->list[2].tls.key, "/home/a/admin.key");
    EXPECT_TRUE(parse_contexts("", "f")->list.empty());
}

TEST(Contexts, ErrorsNameFileContextAndKey) {
    const struct {
        const char* text;
        const char* what;
    } cases[] = {
        {"[a]\ntls-ca = x\n", "f: context a: the key gateway is missing"},
        {"[a]\ngateway = here\n", "f: context a: gateway: \"here\" must be unix:PATH or HOST:PORT"},
        {"[a]\ngateway = unix:/a\nsync-server = h:1\n",
         "f: context a: sync-server: \"h:1\" must be unix:PATH"},
        {"[a]\ngateway = unix:/a\ngatway = unix:/b\n",
         "f: context a: there is no key gatway; must be gateway, sync-server, "},
        {"gateway = unix:/a\n", "f: there is no key gateway; must be context, "},
        {"[a]\ngateway = unix:/a\ngateway = unix:/b\n", "f: context a: gateway is given twice"},
        {"[a b]\ngateway = unix:/a\n", "f: context a b: a name must be letters"},
        {"context = b\n[a]\ngateway = unix:/a\n", "f: there is no context b; must be a"},
        {" [ ] # none\ngateway = unix:/a\n", "f: []: the name of a context is missing"},
        {"[a]\ngateway unix:/a\n", "f: "},
    };
    for (const auto& c : cases) {
        const auto refused = parse_contexts(c.text, "f");
        ASSERT_FALSE(refused) << c.text;
        EXPECT_EQ(refused.error().code, Errc::InvalidArgument) << c.text;
        EXPECT_TRUE(refused.error().what.starts_with(c.what)) << refused.error().what;
    }
}

class ContextLine : public testing::Test {
 protected:
    Result<Invocation> read(const Words& words) {
        const auto line = read_command_line(words, environment_);
        if (!line) {
            return std::unexpected(line.error());
        }
        return std::get<Invocation>(*line);
    }
    std::string gateway(const Words& words) {
        const auto invocation = read(words);
        return invocation ? invocation->request.target.text : invocation.error().what;
    }

    std::optional<std::string> text_ = kFile;
    std::string path_;
    Environment environment_{.home_config = "/home/a/contexts.ini",
                             .read_file = [this](const std::string& path) {
                                 path_ = path;
                                 return Result<std::optional<std::string>>(text_);
                             }};
};

TEST_F(ContextLine, TheLineOverridesTheContextAndTheContextTheEnvironment) {
    EXPECT_EQ(gateway({"status"}), "[2001:db8::1]:9106") << "the file's default";
    EXPECT_EQ(path_, "/home/a/contexts.ini");
    EXPECT_EQ(gateway({"status", "--context", "edge-1"}), "192.0.2.1:9106");
    EXPECT_EQ(gateway({"status", "--context", "edge-1", "--gateway", "unix:/x"}), "unix:/x");
    EXPECT_EQ(gateway({"status", "--gateway", "unix:/x"}), "unix:/x");
    const auto mixed = read({"status", "--context", "edge-1", "--tls-key", "mine.key"});
    ASSERT_TRUE(mixed) << mixed.error().what;
    EXPECT_EQ(mixed->request.tls.key, "mine.key");
    EXPECT_EQ(mixed->request.tls.authority, "/home/a/ca.pem");
    EXPECT_EQ(read({"get", "sync", "--context", "edge.2_x"})->request.sync_target.text,
              "unix:/run/penstock/sync.sock");

    environment_.gateway = "unix:/of/environment";
    EXPECT_EQ(gateway({"status"}), "unix:/of/environment") << "it replaces the default context";
    EXPECT_EQ(gateway({"status", "--context", "edge-1"}), "192.0.2.1:9106");
}

TEST_F(ContextLine, TheFileIsReadOnlyIfItIsNeeded) {
    text_.reset();
    EXPECT_EQ(gateway({"status"}), client::kDefaultTarget) << "there is no default file";
    for (const Words& words : {Words{"status", "--context", "edge-1"}, Words{"status", "--config", "/c.ini"},
                               Words{"status", "--all-gateways"}, Words{"get", "contexts"}}) {
        const auto refused = read(words);
        ASSERT_FALSE(refused) << testing::PrintToString(words);
        EXPECT_EQ(exit_code(refused.error()), kExitUsage);
        EXPECT_THAT(refused.error().what, testing::HasSubstr(".ini: there is no such context file"));
    }
    EXPECT_EQ(path_, "/home/a/contexts.ini");
    environment_.config = "/of/environment.ini";
    EXPECT_FALSE(read({"status"}));
    EXPECT_EQ(path_, "/of/environment.ini");
    text_ = "broken";
    path_.clear();
    EXPECT_TRUE(read({"completion", "bash"})) << "it uses no gateway";
    EXPECT_EQ(path_, "");
}

TEST_F(ContextLine, AllGatewaysAreThoseOfTheFileInItsOrder) {
    const auto all = read({"get", "services", "--all-gateways", "-n", "shop"});
    ASSERT_TRUE(all) << all.error().what;
    ASSERT_EQ(all->all.size(), 3u);
    EXPECT_EQ(all->all[0].name, "edge-1");
    EXPECT_EQ(all->all[0].request.target.text, "192.0.2.1:9106");
    EXPECT_EQ(all->all[2].request.target.text, "[2001:db8::1]:9106");
    EXPECT_EQ(all->all[2].request.namespace_name, "shop");
    const auto what = [&](const Words& words) { return read(words).error().what; };
    EXPECT_EQ(what({"status", "--all-gateways", "--context", "edge-1"}),
              "--all-gateways and --context are mutually exclusive");
    EXPECT_EQ(what({"status", "--all-gateways", "--gateway", "unix:/x"}),
              "--all-gateways and --gateway are mutually exclusive");
    for (const Words& writes :
         {Words{"drain"}, Words{"undrain"}, Words{"fail-back"}, Words{"clear", "affinity"},
          Words{"set", "log-level", "info"}, Words{"get", "pools"}}) {
        Words words = writes;
        words.emplace_back("--all-gateways");
        EXPECT_THAT(what(words), testing::HasSubstr("--all-gateways is not an option of"));
    }
    text_ = "[a]\ngateway = 192.0.2.1:9106\n";
    EXPECT_THAT(what({"status", "--all-gateways"}), testing::StartsWith("context a: "));
    text_ = "# nothing\n";
    EXPECT_THAT(what({"status", "--all-gateways"}), testing::HasSubstr("there is no context in this file"));
}

TEST_F(ContextLine, GetContextsListsThem) {
    const auto answer = [&](const Words& words) {
        const auto invocation = read(words);
        return answer_of(*invocation->command, nullptr, invocation->request).value();
    };
    EXPECT_EQ(answer({"get", "contexts"}),
              "NAME      GATEWAY                      SYNC-SERVER                            DEFAULT\n"
              "edge-1    192.0.2.1:9106               unix:/run/penstock/penstock-sync.sock  -\n"
              "edge.2_x  unix:/run/penstock/two.sock  unix:/run/penstock/sync.sock           -\n"
              "edge-2    [2001:db8::1]:9106           unix:/run/penstock/penstock-sync.sock  *\n");
    EXPECT_THAT(answer({"get", "contexts", "-o", "yaml"}),
                testing::EndsWith("- name: edge-2\n  gateway: \"[2001:db8::1]:9106\"\n  sync_server: "
                                  "\"unix:/run/penstock/penstock-sync.sock\"\n  is_default: true\n"));
}

}  // namespace contexts_test
}  // namespace penstock::cli
