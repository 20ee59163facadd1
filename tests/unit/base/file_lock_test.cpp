// SPDX-License-Identifier: Apache-2.0
// Locks that one process has at a time and that end with it.
#include "control/base/file_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/support/scratch_folder.hpp"

namespace penstock {
namespace file_lock_test {

TEST(FileLock, ASecondStartFailsByName) {
    const test::ScratchFolder folder;
    const std::string path = folder.path() / "port-veth0.lock";
    auto first = FileLock::acquire(path, "port veth0");
    ASSERT_TRUE(first) << first.error().what;
    const auto second = FileLock::acquire(path, "port veth0");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    EXPECT_EQ(second.error().what, "port veth0 is in use by process " + std::to_string(getpid()));
    *first = FileLock();
    EXPECT_TRUE(FileLock::acquire(path, "port veth0"));
}

TEST(FileLock, DiesWithItsProcess) {
    const test::ScratchFolder folder;
    const std::string path = folder.path() / "port-pci-x.lock";
    const pid_t child = fork();
    if (child == 0) {
        auto lock = FileLock::acquire(path, "port x");
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_TRUE(FileLock::acquire(path, "port x"));
}

}  // namespace file_lock_test
}  // namespace penstock
