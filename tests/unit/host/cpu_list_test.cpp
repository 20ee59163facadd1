// SPDX-License-Identifier: Apache-2.0
#include "control/host/cpu_list.hpp"

#include <gtest/gtest.h>

namespace penstock::host {
namespace cpu_list_test {

using Cpus = std::vector<unsigned>;

TEST(CpuList, ListsOfTheKernel) {
    EXPECT_EQ(parse_cpu_list("0-3,8\n"), (Cpus{0, 1, 2, 3, 8}));
    EXPECT_EQ(parse_cpu_list("8,0-1,1"), (Cpus{0, 1, 8}));
    EXPECT_EQ(parse_cpu_list(""), Cpus());
    EXPECT_EQ(parse_cpu_list(" \n"), Cpus());
    for (const char* wrong : {"a", "1-", "-1", "3-1", "1,,2", "1-2-3", "0-1024", "0x1"}) {
        EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
    }
}

TEST(CpuList, TextIsReadBack) {
    EXPECT_EQ(cpu_list_text({}), "");
    EXPECT_EQ(cpu_list_text({5}), "5");
    EXPECT_EQ(cpu_list_text({0, 1, 2, 4, 6, 7}), "0-2,4,6-7");
    EXPECT_EQ(parse_cpu_list(cpu_list_text({0, 1, 2, 4, 6, 7})), (Cpus{0, 1, 2, 4, 6, 7}));
}

}  // namespace cpu_list_test
}  // namespace penstock::host
