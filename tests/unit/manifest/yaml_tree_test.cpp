// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/yaml_tree.hpp"

#include <gtest/gtest.h>

#include <string>

namespace penstock::manifest {
namespace yaml_tree_test {

using enum Value::Kind;

TEST(YamlTree, KeepsQuotedAndPlainScalarsApart_GEN003) {
    const Tree tree = parse_tree(
        "plain: 80\nsingle: '80'\ndouble: \"80\"\nblock: |-\n  80\ntagged: !!str 80\nforced: !!int \"80\"\n",
        1);
    ASSERT_TRUE(tree.root);
    EXPECT_EQ(tree.root->find("plain")->kind, Integer);
    EXPECT_EQ(tree.root->find("single")->kind, String);
    EXPECT_EQ(tree.root->find("double")->kind, String);
    EXPECT_EQ(tree.root->find("block")->kind, String);
    EXPECT_EQ(tree.root->find("tagged")->kind, String);
    EXPECT_EQ(tree.root->find("forced")->integer, 80);
    EXPECT_EQ(tree.root->find("missing"), nullptr);
}

TEST(YamlTree, NumbersLinesWithinTheFile) {
    const Tree tree = parse_tree("a: 1\nb:\n  - x\n  - y\n", 10);
    ASSERT_TRUE(tree.root);
    EXPECT_EQ(tree.root->line, 10u);
    EXPECT_EQ(tree.root->find("b")->items[1]->line, 13u);
}

TEST(YamlTree, AliasesAndMergeKeysStandForTheirTargets) {
    const Tree tree =
        parse_tree("base: &base {port: 80, name: web}\nother:\n  <<: *base\n  name: api\ncopy: *base\n", 1);
    ASSERT_TRUE(tree.root);
    EXPECT_EQ(tree.root->find("other")->find("port")->integer, 80);
    EXPECT_EQ(tree.root->find("other")->find("name")->text, "api");
    EXPECT_EQ(tree.root->find("copy")->find("name")->text, "web");
}

TEST(YamlTree, AKeyGivenTwiceIsAFaultOfItsMapping) {
    const Tree tree = parse_tree("a: {port: 80}\nb:\n  port: 80\n  port: 81\n", 1);
    ASSERT_TRUE(tree.root);
    EXPECT_FALSE(tree.root->find("a")->has_faults);
    EXPECT_EQ(faults_in(*tree.root), (std::vector<Fault>{{4, "key \"port\" is duplicated in one mapping"}}));
    EXPECT_EQ(tree.root->find("b")->find("port")->integer, 80);
}

TEST(YamlTree, EmptyTextIsNoDocumentAndNoFault) {
    const Tree tree = parse_tree("# nothing here\n", 1);
    EXPECT_FALSE(tree.root && tree.root->kind != Null);
    EXPECT_FALSE(tree.fault);
}

struct Refusal {
    const char* name;
    std::string text;
    const char* rule;
    uint32_t line;
};

std::string nested(int levels) {
    return std::string(static_cast<size_t>(levels), '[') + std::string(static_cast<size_t>(levels), ']');
}

// Nine levels of nine aliases each: 9^9 values from 400 bytes.
std::string billion_laughs() {
    std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
    for (int level = 1; level < 10; ++level) {
        const std::string below = "*a" + std::to_string(level - 1);
        text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
        for (int i = 0; i < 9; ++i) {
            text += (i == 0 ? "" : ",") + below;
        }
        text += "]\n";
    }
    return text;
}

class RefusedYaml : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedYaml, NamesRuleAndLine_GEN001) {
    const Tree tree = parse_tree(GetParam().text, 1);
    EXPECT_FALSE(tree.root);
    ASSERT_TRUE(tree.fault);
    EXPECT_NE(tree.fault->rule.find(GetParam().rule), std::string::npos) << tree.fault->rule;
    EXPECT_EQ(tree.fault->line, GetParam().line) << tree.fault->rule;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedYaml,
    testing::Values(Refusal{"open_double_quote", "a: 1\nb: \"x\nc: 2\n", "YAML syntax", 4},
                    Refusal{"open_single_quote", "a: 'x", "YAML syntax", 2},
                    Refusal{"syntax", "a: b\nc: [1, 2\n", "YAML syntax", 3},
                    Refusal{"depth", "a: 1\nb: " + nested(64), "nested deeper than 64 levels", 2},
                    Refusal{"deep_scan", nested(100'000), "nested deeper than 64 levels", 1},
                    Refusal{"laughs", billion_laughs(), "counting expanded aliases", 7},
                    Refusal{"cycle", "a: &a\n  b: *a\n", "the value that contains it", 2},
                    Refusal{"unknown_alias", "a: *nowhere\n", "YAML syntax", 1},
                    Refusal{"complex_key", "? [a, b]\n: c\n", "a key must be a scalar", 1},
                    Refusal{"foreign_tag", "a: !!python/object:os.system ls\n",
                            "not supported in Kubernetes manifests", 1},
                    Refusal{"wrong_tag", "a: 1\nb: !!int web\n", "does not fit its value", 2},
                    Refusal{"merge", "a: 1\n<<: 5\n", "<< requires", 2}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(YamlTree, DepthAtTheLimitIsTaken) {
    const Tree tree = parse_tree(nested(64), 1);
    ASSERT_TRUE(tree.root);
    EXPECT_EQ(tree.root->height, 64u);
}

TEST(YamlTree, ADeepAliasCountsFromWhereItIsUsed) {
    const std::string text = "deep: &deep " + nested(40) + "\nuse: " + std::string(30, '[') + "*deep " +
                             std::string(30, ']') + "\n";
    EXPECT_TRUE(parse_tree(text, 1).fault);
}

TEST(YamlTree, ValuesAreCountedToTheLimit) {
    const TreeLimits limits{.depth_max = 64, .values_max = 4};
    EXPECT_TRUE(parse_tree("[a, b, c]", 1, limits).root);
    EXPECT_FALSE(parse_tree("[a, b, c, d]", 1, limits).root);
}

}  // namespace yaml_tree_test
}  // namespace penstock::manifest
