// SPDX-License-Identifier: Apache-2.0
#include "dataplane/stats/counters.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace penstock::stats {
namespace counters_test {

// Name -> meaning of every table row "| `name` | meaning | ..." of docs/counters.md.
std::map<std::string, std::string> documented_counters() {
    std::map<std::string, std::string> rows;
    std::ifstream page(PENSTOCK_COUNTERS_PAGE);
    for (std::string line; std::getline(page, line);) {
        const size_t end = line.find("` | ");
        if (line.rfind("| `", 0) != 0 || end == std::string::npos) {
            continue;
        }
        const size_t meaning = end + 4;
        rows[line.substr(3, end - 3)] = line.substr(meaning, line.find(" |", meaning) - meaning);
    }
    return rows;
}

// docs/counters.md is the operators' reference for lost packets: it contains every drop reason and counter,
// in the same words as the CLI.
TEST(CountersPage, SaysWhatTheListsSay) {
    const std::map<std::string, std::string> page = documented_counters();
    const auto expect = [&](std::string_view name, std::string_view meaning) {
        const auto row = page.find(std::string(name));
        ASSERT_NE(row, page.end()) << name << " is missing in docs/counters.md";
        EXPECT_EQ(row->second, meaning) << name;
    };
    std::set<std::string_view> names;
    for (const DropReasonText& text : kDropReasonTexts) {
        expect(text.counter, text.meaning);
        EXPECT_TRUE(names.insert(text.counter).second) << text.counter << " names two reasons";
    }
    for (const CounterText& text : kCounterTexts) {
        expect(text.name, text.meaning);
        EXPECT_TRUE(names.insert(text.name).second) << text.name << " names two counters";
    }
    for (const CounterText& text : kPortCounterTexts) {
        expect(text.name, text.meaning);
        EXPECT_TRUE(names.insert(text.name).second) << text.name << " names two counters";
    }
}

TEST(Tally, CountsUpDownAndIsSet) {
    Tally tally;
    tally.add(5);
    tally.subtract(2);
    EXPECT_EQ(tally.read(), 3u);
    tally.set(9);
    EXPECT_EQ(tally.read(), 9u);
}

}  // namespace counters_test
}  // namespace penstock::stats
