// SPDX-License-Identifier: Apache-2.0
// Rotation by size and time, other programs that rename the file, and a full disk.
#include "control/flow_records/rotated_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/scratch_folder.hpp"

namespace penstock::flow_records {
namespace rotated_file_test {

constexpr uint32_t kHour = 3'600;
constexpr int64_t kNow = 1'764'300'000 / kHour * kHour;  // the begin of an hour

class RotatedFileTest : public testing::Test {
 protected:
    std::string content(const std::string& suffix = "") const {
        std::ifstream file(path() + suffix, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::string path() const { return (folder_.path() / "a/b/flows.jsonl").string(); }
    // The file has been written at this time, as far as its metadata shows.
    void set_time(int64_t seconds) const {
        const timespec times[2] = {{seconds, 0}, {seconds, 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, path().c_str(), times, 0), 0);
    }
    test::ScratchFolder folder_;
};

TEST_F(RotatedFileTest, CreatesItsFoldersAndAppends) {
    RotatedFile file(path(), {});
    ASSERT_TRUE(file.append("one\n", kHour, kNow));
    ASSERT_TRUE(file.append("two\n", kHour, kNow + 1));
    EXPECT_EQ(content(), "one\ntwo\n");
    struct stat status{};
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07, 0U) << "others cannot read it";
    ASSERT_EQ(::stat((folder_.path() / "a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07, 0U);
}

TEST_F(RotatedFileTest, KeepsSoManyFilesOfASize) {
    RotatedFile file(path(), {.bytes_max = 10, .kept = 2});
    for (const char* lines : {"1234\n", "5678\n", "abcd\n", "longer than a file\n", "x\n", "y\n"}) {
        ASSERT_TRUE(file.append(lines, kHour, kNow));
    }
    EXPECT_EQ(content(), "x\ny\n");
    EXPECT_EQ(content(".1"), "longer than a file\n");
    EXPECT_EQ(content(".2"), "abcd\n");
    EXPECT_FALSE(std::filesystem::exists(path() + ".3"));
}

TEST_F(RotatedFileTest, KeepsNone) {
    RotatedFile file(path(), {.bytes_max = 10, .kept = 0});
    for (const char* lines : {"123456\n", "abcdef\n"}) {
        ASSERT_TRUE(file.append(lines, kHour, kNow));
    }
    EXPECT_EQ(content(), "abcdef\n");
    EXPECT_FALSE(std::filesystem::exists(path() + ".1"));
}

TEST_F(RotatedFileTest, BeginsANewFileInEachInterval_ANN11) {
    RotatedFile file(path(), {});
    ASSERT_TRUE(file.append("a\n", kHour, kNow + 10));
    ASSERT_TRUE(file.append("b\n", kHour, kNow + kHour - 1));
    ASSERT_TRUE(file.append("c\n", kHour, kNow + kHour));
    EXPECT_EQ(content(".1"), "a\nb\n");
    EXPECT_EQ(content(), "c\n");
    ASSERT_TRUE(file.append("d\n", 300, kNow + kHour + 299));
    ASSERT_TRUE(file.append("e\n", 300, kNow + kHour + 300));
    EXPECT_EQ(content(".2"), "a\nb\n");
    EXPECT_EQ(content(".1"), "c\nd\n");
    EXPECT_EQ(content(), "e\n");
}

TEST_F(RotatedFileTest, ContinuesTheFileOfAFormerProcessInItsInterval) {
    {
        RotatedFile former(path(), {});
        ASSERT_TRUE(former.append("a\n", kHour, kNow));
    }
    set_time(kNow + 5);
    {
        RotatedFile next(path(), {});
        ASSERT_TRUE(next.append("b\n", kHour, kNow + 10));
        EXPECT_EQ(content(), "a\nb\n");
    }
    set_time(kNow + 10);
    RotatedFile later(path(), {});
    ASSERT_TRUE(later.append("c\n", kHour, kNow + 2 * kHour));
    EXPECT_EQ(content(".1"), "a\nb\n");
    EXPECT_EQ(content(), "c\n");
}

// As logrotate does; and a second process that rotates.
TEST_F(RotatedFileTest, LeavesAFileThatWasRenamed) {
    RotatedFile file(path(), {});
    ASSERT_TRUE(file.append("a\n", kHour, kNow));
    std::filesystem::rename(path(), path() + ".old");
    ASSERT_TRUE(file.append("b\n", kHour, kNow));
    EXPECT_EQ(content(".old"), "a\n");
    EXPECT_EQ(content(), "b\n");
    std::filesystem::remove_all(folder_.path() / "a");
    ASSERT_TRUE(file.append("c\n", kHour, kNow));
    EXPECT_EQ(content(), "c\n");
    set_time(kNow);
    file.reopen();
    ASSERT_TRUE(file.append("d\n", kHour, kNow));
    EXPECT_EQ(content(), "c\nd\n");
}

TEST_F(RotatedFileTest, RefusesWhatIsNoFile) {
    std::filesystem::create_directories(folder_.path() / "a/b");
    folder_.write("elsewhere", "kept\n");
    std::filesystem::create_symlink(folder_.path() / "elsewhere", path());
    RotatedFile file(path(), {});
    const Status linked = file.append("x\n", kHour, kNow);
    ASSERT_FALSE(linked);
    EXPECT_NE(linked.error().what.find(path()), std::string::npos) << linked.error().what;
    std::filesystem::remove(path());
    std::filesystem::create_directories(path());
    EXPECT_FALSE(file.append("x\n", kHour, kNow));
    std::filesystem::remove(path());
    EXPECT_TRUE(file.append("x\n", kHour, kNow));
}

// The limit of a file's size acts as a full disk: a write is shortened, and the next one fails.
TEST_F(RotatedFileTest, AFailedWriteLeavesWholeLines) {
    RotatedFile file(path(), {});
    ASSERT_TRUE(file.append("first\n", kHour, kNow));
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{10, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status failed = file.append("second\n", kHour, kNow);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, ignored);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().what, "cannot write " + path() + ": File too large");
    EXPECT_EQ(content(), "first\n");
    ASSERT_TRUE(file.append("third\n", kHour, kNow));
    EXPECT_EQ(content(), "first\nthird\n");
}

}  // namespace rotated_file_test
}  // namespace penstock::flow_records
