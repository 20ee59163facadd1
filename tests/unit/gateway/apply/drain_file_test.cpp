// SPDX-License-Identifier: Apache-2.0
// A drain over a restart, with a writable folder and with one that cannot be written.
#include "control/gateway/apply/drain_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace penstock::gateway {
namespace drain_file_test {

class DrainFileTest : public testing::Test {
 protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "/drainXXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path folder_;
};

TEST_F(DrainFileTest, RemembersUntilItIsTakenBack_DRAIN006) {
    const std::string state = folder_ / "new" / "last-good.pb";
    EXPECT_FALSE(DrainFile(state).is_drained());
    EXPECT_TRUE(DrainFile(state).set(false)) << "nothing to take back is no failure";
    for (int twice = 0; twice < 2; ++twice) {
        EXPECT_TRUE(DrainFile(state).set(true));
        EXPECT_TRUE(DrainFile(state).is_drained()) << "the next start";
    }
    EXPECT_TRUE(DrainFile(state).set(false));
    EXPECT_FALSE(DrainFile(state).is_drained());
}

TEST_F(DrainFileTest, AFailureIsTold) {
    std::ofstream(folder_ / "file") << "no folder";
    const Status kept = DrainFile(folder_ / "file" / "last-good.pb").set(true);
    ASSERT_FALSE(kept);
    EXPECT_NE(kept.error().what.find("last-good.pb.drained"), std::string::npos) << kept.error().what;
    const Status nowhere = DrainFile("").set(true);
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, Errc::Unsupported);
    EXPECT_FALSE(DrainFile("").is_drained());
}

}  // namespace drain_file_test
}  // namespace penstock::gateway
