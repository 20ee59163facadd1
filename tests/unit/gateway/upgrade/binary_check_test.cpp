// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/binary_check.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::gateway {
namespace binary_check_test {

class BinaryCheckTest : public testing::Test {
 protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "/binary_check_XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        path_ = folder_ + "/penstockd";
        std::ofstream(path_) << "a program";
        ASSERT_EQ(chmod(path_.c_str(), 0755), 0);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    Error refusal() const {
        const auto opened = open_trusted_binary(path_);
        return opened ? Error{Errc::Internal, "accepted"} : opened.error();
    }
    std::string folder_, path_;
};

TEST_F(BinaryCheckTest, OpensAnExecutableFileOfItsOwnUser) {
    const auto opened = open_trusted_binary(path_);
    ASSERT_TRUE(opened) << opened.error().what;
    char text[9];
    EXPECT_EQ(read(opened->get(), text, sizeof text), 9);
}

TEST_F(BinaryCheckTest, FollowsLinks) {
    ASSERT_EQ(symlink(path_.c_str(), (folder_ + "/link").c_str()), 0);
    path_ = folder_ + "/link";
    EXPECT_TRUE(open_trusted_binary(path_));
}

TEST_F(BinaryCheckTest, RefusesByName) {
    EXPECT_EQ(open_trusted_binary("penstockd").error().code, Errc::InvalidArgument);
    EXPECT_EQ(open_trusted_binary("penstockd").error().what, "binary penstockd: must be an absolute path");
    ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
    EXPECT_EQ(refusal().code, Errc::PermissionDenied);
    EXPECT_EQ(refusal().what, "binary " + path_ + ": Permission denied: it is no executable file");
    for (const mode_t mode : {0775U, 0757U}) {
        ASSERT_EQ(chmod(path_.c_str(), mode), 0);
        EXPECT_EQ(refusal().code, Errc::PermissionDenied);
        EXPECT_EQ(refusal().what, "binary " + path_ +
                                      ": is not trusted: its group or others can write it (mode " +
                                      (mode == 0775U ? "0775" : "0757") + "); use chmod go-w");
    }
    ASSERT_EQ(unlink(path_.c_str()), 0);
    EXPECT_EQ(refusal().code, Errc::NotFound);
    EXPECT_EQ(refusal().what, "binary " + path_ + ": No such file or directory");
    // A FIFO does not block it.
    ASSERT_EQ(mkfifo(path_.c_str(), 0755), 0);
    EXPECT_EQ(refusal().code, Errc::PermissionDenied);
}

TEST_F(BinaryCheckTest, RefusesAFileOfAnotherUser) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file to another user";
    }
    ASSERT_EQ(chown(path_.c_str(), 4711, 0), 0);
    EXPECT_EQ(refusal().code, Errc::PermissionDenied);
    EXPECT_EQ(refusal().what, "binary " + path_ +
                                  ": is not trusted: it belongs to user 4711, and must belong to root or to "
                                  "penstockd's user");
}

}  // namespace binary_check_test
}  // namespace penstock::gateway
