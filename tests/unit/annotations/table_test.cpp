// SPDX-License-Identifier: Apache-2.0
// Properties that every row of the table, and every refused key, must have.
#include "control/annotations/table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "control/annotations/refused.hpp"

namespace penstock::annotations {
namespace table_test {

TEST(AnnotationTable, KeysAreUniqueAndFound_ANNG1) {
    std::set<std::string_view> seen;
    for (const SettingSpec& spec : specs()) {
        for (const Spelling& spelling : spec.spellings) {
            EXPECT_TRUE(seen.insert(spelling.key).second) << spelling.key;
            EXPECT_EQ(find(spelling.key), &spec) << spelling.key;
            const bool is_first = &spelling == &spec.spellings.front();
            EXPECT_TRUE(is_first || !spelling.key.starts_with(kNativePrefix))
                << spelling.key << ": the native key goes first";
        }
        EXPECT_FALSE(spec.effect.empty() || spec.fallback.empty() || spec.instead.empty())
            << spec.requirement;
    }
    for (const RefusedKey& refused : refused_keys()) {
        EXPECT_TRUE(seen.insert(refused.key).second) << refused.key;
        EXPECT_EQ(find_refused(refused.key), &refused) << refused.key;
        EXPECT_FALSE(refused.reason.empty() || refused.requirement.empty()) << refused.key;
    }
    EXPECT_EQ(find_refused("penstock.io/idle-timeout"), nullptr);
    EXPECT_EQ(find_refused(""), nullptr);
    EXPECT_EQ(find("penstock.io/idle-timout"), nullptr);
    EXPECT_EQ(find(""), nullptr);
}

TEST(AnnotationTable, NearestKey_ANNG5) {
    struct Row {
        const char* key;
        const char* expected;
    };
    const Row rows[] = {
        {"penstock.io/idle-timout", "penstock.io/idle-timeout"},
        {"penstock.io/Scheduler", "penstock.io/scheduler"},
        {"penstock.io/sceduler", "penstock.io/scheduler"},
        {"penstock.io/health-chek", "penstock.io/health-check"},
        {"penstock.io/source-range-policy", "penstock.io/source-ranges-policy"},
        {"penstock.io/proxy-protocoll", "penstock.io/proxy-protocol"},
        {"penstock.io/xyzzy-plugh-quux", ""},
        {"penstock.io/", ""},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(nearest_native(row.key), row.expected) << row.key;
    }
    EXPECT_EQ(nearest_native("penstock.io/" + std::string(1'000'000, 'x')), "");
}

}  // namespace table_test
}  // namespace penstock::annotations
