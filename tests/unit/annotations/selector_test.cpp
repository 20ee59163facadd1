// SPDX-License-Identifier: Apache-2.0
// Label selectors in the syntax of kubectl -l.
#include "control/annotations/selector.hpp"

#include <gtest/gtest.h>

namespace penstock::annotations {
namespace selector_test {

TEST(Selector, MatchesAsKubernetesDoes_ANN14) {
    struct Row {
        const char* selector;
        Labels labels;
        bool expected;
    };
    const Labels web{{"tier", "web"}, {"example.com/zone", "a"}};
    const Row rows[] = {
        {"tier=web", web, true},
        {"tier==web", web, true},
        {" tier = web ", web, true},
        {"tier=db", web, false},
        {"tier!=db", web, true},
        {"tier!=web", web, false},
        {"rack!=1", web, true},  // an object without the label matches !=
        {"tier", web, true},
        {"rack", web, false},
        {"!rack", web, true},
        {"!tier", web, false},
        {"tier in (db, web)", web, true},
        {"tier in (web)", web, true},
        {"tier in(db,cache)", web, false},
        {"rack in (1)", web, false},
        {"tier notin (db, cache)", web, true},
        {"tier notin (web)", web, false},
        {"rack notin (1)", web, true},
        {"example.com/zone=a,tier in (web),!rack", web, true},
        {"example.com/zone=a,tier in (web),rack", web, false},
        {"empty=", {{"empty", ""}}, true},
        {"empty=", {{"empty", "x"}}, false},
        {"in=1", {{"in", "1"}}, true},
    };
    for (const Row& row : rows) {
        const auto selector = Selector::parse(row.selector);
        ASSERT_TRUE(selector) << row.selector << ": " << selector.error().what;
        EXPECT_EQ(selector->matches(row.labels), row.expected) << row.selector;
    }
    EXPECT_TRUE(Selector().matches(web));
}

TEST(Selector, WhatCannotBeReadIsRefusedByName_ANN14) {
    for (const char* text : {"",
                             ",",
                             "a=b,",
                             ",a",
                             "a b",
                             "a in",
                             "a in b",
                             "a in (b",
                             "a in (b,c",
                             "a in b)",
                             "a~b",
                             "a=b=c",
                             "!a=b",
                             "!",
                             "=b",
                             "a=-b",
                             "-a=b",
                             "a/=b",
                             "/a=b",
                             "A.com/x=b",
                             "a..b/x=c",
                             "a=b c",
                             "a in (b) c",
                             "a>1",
                             "0123456789012345678901234567890123456789012345678901234567890123=x"}) {
        EXPECT_FALSE(Selector::parse(text)) << text;
    }
    EXPECT_NE(Selector::parse("tier=web,,x").error().what.find("label key is expected before \",x\""),
              std::string::npos)
        << Selector::parse("tier=web,,x").error().what;
}

TEST(Selector, TextIsParsedToTheSameSelector_ANN14) {
    const struct {
        const char* given;
        const char* text;
    } rows[] = {{"tier=web", "tier=web"},
                {" tier == web , zone != a ", "tier=web,zone!=a"},
                {"zone in (b, a),zone notin (c,d)", "zone in (a,b),zone notin (c,d)"},
                {"canary,!old", "canary,!old"},
                {"zone in (a)", "zone=a"},
                {"empty=", "empty="},
                {"empty in (,x)", "empty in (,x)"}};
    for (const auto& row : rows) {
        const auto selector = Selector::parse(row.given);
        ASSERT_TRUE(selector) << row.given << ": " << selector.error().what;
        EXPECT_EQ(selector->text(), row.text);
        EXPECT_EQ(Selector::parse(selector->text()).value(), *selector) << row.text;
    }
    EXPECT_EQ(Selector().text(), "");
}

// Each endpoint of a Service is compared with each requirement, and an annotation has room for 80,000
// requirements.
TEST(Selector, HasAtMost64Requirements_ANN14) {
    std::string text = "!r0";
    for (size_t i = 1; i < Selector::kPartsMax; ++i) {
        text += ",!r" + std::to_string(i);
    }
    EXPECT_TRUE(Selector::parse(text));
    const auto longer = Selector::parse(text + ",tier=web");
    ASSERT_FALSE(longer);
    EXPECT_NE(longer.error().what.find("64 requirements"), std::string::npos) << longer.error().what;
}

}  // namespace selector_test
}  // namespace penstock::annotations
