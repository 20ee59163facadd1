// SPDX-License-Identifier: Apache-2.0
// The file that grants external IPs: its syntax, the reports of mistakes, and reloading.
#include "control/sync/external_ip_policy.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "control/semantics/rights.hpp"

namespace penstock::sync {
namespace external_ip_policy_test {

namespace fs = std::filesystem;
using std::chrono::seconds;

Prefix cidr(std::string_view text) {
    return Prefix::parse(text).value();
}

TEST(ExternalIpPolicy, GrantsWhatItSays_XIP006) {
    const auto policy = parse_external_ip_policy(
        "# who may what\n"
        "externalIPs:\n"
        "  - namespaces: [web, shop, web]\n"
        "    services: tier in (edge, web)\n"
        "    cidrs: [203.0.113.9/24, \"2001:db8::/64\"]\n"
        "  - namespaces: \"*\"\n"
        "    cidrs: 198.51.100.7/32\n");
    ASSERT_TRUE(policy) << policy.error().what;
    ASSERT_EQ(policy->size(), 2U);
    EXPECT_EQ((*policy)[0], (semantics::ExternalIpRule{
                                .namespaces = {"shop", "web"},
                                .services = annotations::Selector::parse("tier in (edge,web)").value(),
                                .cidrs = {cidr("203.0.113.0/24"), cidr("2001:db8::/64")}}));
    EXPECT_EQ((*policy)[1],
              (semantics::ExternalIpRule{.all_namespaces = true, .cidrs = {cidr("198.51.100.7/32")}}));
    for (const char* nothing : {"", "# nothing\n", "externalIPs:\n", "externalIPs: []\n", "{}\n"}) {
        const auto empty = parse_external_ip_policy(nothing);
        ASSERT_TRUE(empty) << nothing << ": " << empty.error().what;
        EXPECT_TRUE(empty->empty()) << nothing;
    }
}

// The line suggested by a refusal is valid as it is.
TEST(ExternalIpPolicy, TakesTheLineThatARefusalNames_XIP006) {
    const semantics::ClusterFacts facts;
    const semantics::ExternalIpRules nothing{semantics::Policy{}};
    for (const char* text : {"203.0.113.7", "2001:db8::", "::2"}) {
        for (const char* namespace_name : {"shop", "123", "on"}) {
            const IpAddr address = IpAddr::parse(text).value();
            const std::string why =
                semantics::ExternalIpRights(facts, nothing).why_refused(address, namespace_name, {}).value();
            const size_t begin = why.find("- {");
            const std::string line = why.substr(begin, why.find('}') + 1 - begin);
            const auto policy = parse_external_ip_policy("externalIPs:\n" + line + "\n");
            ASSERT_TRUE(policy) << line << ": " << policy.error().what;
            EXPECT_TRUE(
                semantics::ExternalIpRules({.external_ip_rules = *policy}).allow(address, namespace_name, {}))
                << line;
        }
    }
}

TEST(ExternalIpPolicy, EveryMistakeIsNamedWithLineAndRule_XIP006) {
    struct Row {
        const char* text;
        const char* expected;
    };
    const Row rows[] = {
        {"- a\n", "line 1: the file must be a mapping with the field externalIPs"},
        {"externalIPs: 5\n", "line 1: externalIPs must be a list of rules"},
        {"external-ips: []\n", "line 1: the file: unknown field \"external-ips\""},
        {"externalIPs:\n- 5\n", "line 2: rule 1 must be a mapping"},
        {"externalIPs:\n- {cidrs: [10.0.0.0/8]}\n", "line 2: rule 1: namespaces is missing"},
        {"externalIPs:\n- {namespaces: [], cidrs: [10.0.0.0/8]}\n", "line 2: rule 1: namespaces is empty"},
        {"externalIPs:\n- {namespaces: [a]}\n", "line 2: rule 1: cidrs is missing"},
        {"externalIPs:\n- {namespaces: [a], cidrs: {}}\n", "line 2: rule 1: cidrs must be a list"},
        {"externalIPs:\n- {namespaces: [a], cidrs: [80]}\n",
         "line 2: rule 1: cidrs: each entry must be a string"},
        {"externalIPs:\n- {namespaces: [A], cidrs: [10.0.0.0/8]}\n",
         "line 2: rule 1: namespaces: \"A\" is neither the name of a namespace nor \"*\""},
        {"externalIPs:\n- {namespaces: [\"team-*\"], cidrs: [10.0.0.0/8]}\n",
         "line 2: rule 1: namespaces: \"team-*\""},
        {"externalIPs:\n- {namespaces: [a], cidrs: [10.0.0.0/8], service: x}\n",
         "line 2: rule 1: unknown field \"service\""},
        {"externalIPs:\n- {namespaces: [a], cidrs: [10.0.0.0/8], services: [x]}\n",
         "line 2: rule 1: services must be a label selector"},
        {"externalIPs:\n- {namespaces: [a], cidrs: [10.0.0.0/8], services: \"a in b\"}\n",
         "line 2: rule 1: services: \"a in b\": ( is expected"},
        {"externalIPs: [\n", "line "},
    };
    for (const Row& row : rows) {
        const auto policy = parse_external_ip_policy(row.text);
        ASSERT_FALSE(policy) << row.text;
        EXPECT_TRUE(policy.error().what.starts_with(row.expected))
            << row.text << "says: " << policy.error().what;
    }
    // A bare address, and a second mistake in a second rule: both are reported.
    const auto two = parse_external_ip_policy(
        "externalIPs:\n- {namespaces: [a], cidrs: [10.0.0.1]}\n- {namespaces: [a], cidrs: [10.0.0.0/8]}\n- "
        "{namespaces: [b], cidrs: "
        "[x]}\n");
    ASSERT_FALSE(two);
    EXPECT_NE(two.error().what.find("line 2: rule 1: cidrs: "), std::string::npos) << two.error().what;
    EXPECT_NE(two.error().what.find("; line 4: rule 3: cidrs: "), std::string::npos) << two.error().what;
    // Of a duplicate key only one value would be granted.
    EXPECT_FALSE(
        parse_external_ip_policy("externalIPs: [{namespaces: [a], namespaces: [b], cidrs: [10.0.0.0/8]}]\n"));
}

TEST(ExternalIpPolicy, OfManyMistakesTheFirstOnesAreTold) {
    std::string text = "externalIPs:\n";
    for (size_t i = 0; i < kPolicyMistakesTold + 3; ++i) {
        text += "- 5\n";
    }
    const auto policy = parse_external_ip_policy(text);
    ASSERT_FALSE(policy);
    EXPECT_TRUE(policy.error().what.ends_with("; and 3 more")) << policy.error().what;
}

TEST(ExternalIpPolicy, FileThatIsNotThereIsAnError_XIP006) {
    const auto policy = read_external_ip_policy("/nonexistent/policy.yaml");
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().what, "/nonexistent/policy.yaml: cannot read the file");
    EXPECT_FALSE(read_external_ip_policy(fs::temp_directory_path())) << "a folder";
}

}  // namespace external_ip_policy_test
}  // namespace penstock::sync
