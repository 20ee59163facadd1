// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/allocation_file.hpp"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.hpp"

namespace penstock::sync {
namespace allocation_file_test {

IpAddr ip(const char* text) {
    return IpAddr::parse(text).value();
}

const SavedAllocations kTwo = {{{"default", "web"}, {ip("203.0.113.7"), ip("2001:db8:203::7")}},
                               {{"shop", "till"}, {ip("203.0.113.8")}}};

TEST(AllocationFile, ReadsBackWhatItWrote_LB008) {
    const test::ScratchFolder disk;
    const std::string path = disk.path() / "sub/allocations";
    ASSERT_TRUE(read_allocations(path)) << "an absent file has no allocations";
    EXPECT_TRUE(read_allocations(path)->empty());
    ASSERT_TRUE(write_allocations(path, kTwo));
    EXPECT_EQ(read_allocations(path).value(), kTwo);
    ASSERT_TRUE(write_allocations(path, {}));
    EXPECT_EQ(read_allocations(path).value(), SavedAllocations());
}

TEST(AllocationFile, HasOneLineForEachService) {
    EXPECT_EQ(allocations_text(kTwo),
              "penstock-allocations 1\ndefault/web 203.0.113.7 2001:db8:203::7\nshop/till 203.0.113.8\n");
    EXPECT_EQ(parse_allocations(allocations_text(kTwo)).value(), kTwo);
}

TEST(AllocationFile, NamesLineAndRuleOfDamage_LB008) {
    struct Damage {
        const char* text;
        const char* error;
    };
    const std::string head = "penstock-allocations 1\n";
    for (const auto& [text, error] : std::vector<Damage>{
             {"default/web", "line 2: must have one or two addresses"},
             {"default/web 203.0.113.7 203.0.113.8 203.0.113.9", "line 2: must have one or two addresses"},
             {"web 203.0.113.7", "line 2: must begin with namespace/name"},
             {"/web 203.0.113.7", "line 2: must begin with namespace/name"},
             {"default/ 203.0.113.7", "line 2: must begin with namespace/name"},
             {"a/b 203.0.113.7\n\nc/d 203.0.113.8", "line 3: must begin with namespace/name"},
             {"a/b 203.0.113.7\na/b 203.0.113.8", "line 3: a/b is repeated"}}) {
        const auto parsed = parse_allocations(head + text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().what, error);
        EXPECT_EQ(parsed.error().code, Errc::Corrupt);
    }
    EXPECT_NE(parse_allocations(head + "a/b 203.0.113").error().what.find("line 2: "), std::string::npos);
    EXPECT_EQ(parse_allocations("").error().what, "line 1: must be \"penstock-allocations 1\"");
}

}  // namespace allocation_file_test
}  // namespace penstock::sync
