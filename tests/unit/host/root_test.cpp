// SPDX-License-Identifier: Apache-2.0
#include "control/host/root.hpp"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.hpp"

namespace penstock::host {
namespace root_test {

TEST(Root, FilesBelowTheFolder) {
    const penstock::test::ScratchFolder folder;
    folder.write("sys/number", " 42\n");
    folder.write("sys/hex", "1f\n");
    folder.write("sys/b", "");
    std::filesystem::create_symlink("../../drivers/vfio-pci", folder.path() / "sys/driver");
    const Root root(folder.path());
    EXPECT_EQ(root.text("/sys/number"), "42");
    EXPECT_EQ(root.text("sys/number"), "42");
    EXPECT_EQ(root.number("/sys/number"), 42U);
    EXPECT_EQ(root.number("/sys/hex", 16), 0x1fU);
    EXPECT_EQ(root.text("/sys/b"), "");
    EXPECT_FALSE(root.number("/sys/b"));
    EXPECT_FALSE(root.number("/sys/hex"));
    EXPECT_FALSE(root.text("/sys"));
    EXPECT_FALSE(root.text("/none"));
    EXPECT_EQ(root.link_name("/sys/driver"), "vfio-pci");
    EXPECT_FALSE(root.link_name("/sys/number"));
    EXPECT_EQ(root.names("/sys"), (std::vector<std::string>{"b", "driver", "hex", "number"}));
    EXPECT_TRUE(root.names("/none").empty());
    EXPECT_TRUE(root.exists("/sys"));
    EXPECT_FALSE(root.exists("/none"));
}

}  // namespace root_test
}  // namespace penstock::host
