// SPDX-License-Identifier: Apache-2.0
#include "control/base/file_watch.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "control/manifest/folder.hpp"
#include "tests/unit/manifest/temporary_folder.hpp"

namespace penstock::manifest {
namespace file_watch_test {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using Clock = std::chrono::steady_clock;

std::string service(const std::string& name) {
    return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\n";
}

// A watch and its folder, driven as in penstock-sync, on a real inotify.
class FileWatchTest : public testing::Test {
 protected:
    FileWatchTest() : stop_(::eventfd(0, EFD_CLOEXEC)) {}
    ~FileWatchTest() override { ::close(stop_); }

    void follow(const fs::path& path) {
        watch_.emplace(*FileWatch::open(path));
        folder_.emplace(path, Folder::WhenEmpty::Withdraw);
        folder_->load();
    }

    // Loads whenever the watch wakes, until the Services are `names`, for at most `limit`.
    testing::AssertionResult becomes(const std::set<std::string>& names,
                                     std::chrono::milliseconds limit = std::chrono::seconds(60)) {
        std::jthread timer([this, limit](const std::stop_token& done) {
            const auto end = Clock::now() + limit;
            while (!done.stop_requested() && Clock::now() < end) {
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }
            ::eventfd_write(stop_, 1);
        });
        std::set<std::string> found;
        for (;;) {
            const auto wake = watch_->wait(stop_);
            found.clear();
            if (const auto objects = folder_->load(watch_->unfinished()).objects) {
                for (const auto& [name, ignored] : objects->services) {
                    found.insert(name.name);
                }
            }
            if (found == names || wake == FileWatch::Wake::Stopped) {
                break;
            }
        }
        timer.request_stop();
        timer.join();
        eventfd_t ignored = 0;
        ::eventfd_read(stop_, &ignored);
        return found == names ? testing::AssertionSuccess()
                              : testing::AssertionFailure() << testing::PrintToString(found);
    }

    TemporaryFolder disk_;
    int stop_;
    std::optional<FileWatch> watch_;
    std::optional<Folder> folder_;
};

TEST_F(FileWatchTest, SeesCreationChangeMoveAndDeletion) {
    follow(disk_.path());
    disk_.write("a.yaml", service("a"));
    EXPECT_TRUE(becomes({"a"}));
    disk_.write("a.yaml", service("b"));
    EXPECT_TRUE(becomes({"b"}));
    disk_.write("c.tmp", service("c"));
    fs::rename(disk_.path() / "c.tmp", disk_.path() / "a.yaml");
    EXPECT_TRUE(becomes({"c"}));
    fs::rename(disk_.path() / "a.yaml", disk_.path() / "a.txt");
    EXPECT_TRUE(becomes({}));
    fs::rename(disk_.path() / "a.txt", disk_.path() / "z.yaml");
    EXPECT_TRUE(becomes({"c"}));
    fs::remove(disk_.path() / "z.yaml");
    EXPECT_TRUE(becomes({}));
}

TEST_F(FileWatchTest, NoticesAChangeWithinTheGatherTimeAlsoWhileOthersKeepComing) {
    follow(disk_.path());
    std::jthread noise([this](const std::stop_token& done) {
        while (!done.stop_requested()) {
            disk_.write("noise.txt", "x");
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    disk_.write("a.yaml", service("a"));
    const auto begin = Clock::now();
    EXPECT_TRUE(becomes({"a"}));
    // The limit is 40 ms; the rest is tolerance for a busy machine.
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(FileWatchTest, SeesTheLinkSwapOfAConfigMapVolume) {
    fs::create_directory(disk_.path() / "..v1");
    fs::create_directory(disk_.path() / "..v2");
    disk_.write("..v1/a.yaml", service("old"));
    disk_.write("..v2/a.yaml", service("new"));
    fs::create_symlink("..v1", disk_.path() / "..data");
    fs::create_symlink("..data/a.yaml", disk_.path() / "a.yaml");
    follow(disk_.path());
    fs::create_symlink("..v2", disk_.path() / "..data_tmp");
    fs::rename(disk_.path() / "..data_tmp", disk_.path() / "..data");
    EXPECT_TRUE(becomes({"new"}));
}

TEST_F(FileWatchTest, SeesAFolderThatIsALinkBeingSwapped) {
    fs::create_directory(disk_.path() / "v1");
    fs::create_directory(disk_.path() / "v2");
    disk_.write("v1/a.yaml", service("old"));
    disk_.write("v2/a.yaml", service("new"));
    fs::create_directory_symlink("v1", disk_.path() / "now");
    follow(disk_.path() / "now");
    fs::create_directory_symlink("v2", disk_.path() / "next");
    fs::rename(disk_.path() / "next", disk_.path() / "now");
    EXPECT_TRUE(becomes({"new"}));
    disk_.write("v2/b.yaml", service("more"));
    EXPECT_TRUE(becomes({"new", "more"}));
}

TEST_F(FileWatchTest, WaitsForAFolderThatDoesNotExistYetAndForItsReturn) {
    const fs::path later = disk_.path() / "some" / "where" / "manifests";
    follow(later);
    EXPECT_EQ(folder_->load().objects, nullptr);
    fs::create_directories(later);
    std::ofstream(later / "a.yaml") << service("a");
    EXPECT_TRUE(becomes({"a"}));
    fs::rename(disk_.path() / "some", disk_.path() / "gone");
    fs::create_directories(later);
    std::ofstream(later / "b.yaml") << service("b");
    EXPECT_TRUE(becomes({"b"}));
}

TEST_F(FileWatchTest, FollowsASingleFileThroughAtomicReplacement) {
    disk_.write("one.yaml", service("a"));
    follow(disk_.path() / "one.yaml");
    disk_.write("one.yaml.tmp", service("b"));
    fs::rename(disk_.path() / "one.yaml.tmp", disk_.path() / "one.yaml");
    EXPECT_TRUE(becomes({"b"}));
    disk_.write("one.yaml", service("c"));
    EXPECT_TRUE(becomes({"c"}));
}

TEST_F(FileWatchTest, ATruncatedFileIsNoStatementUntilItIsClosed) {
    disk_.write("a.yaml", service("a"));
    follow(disk_.path());
    {
        std::ofstream open(disk_.path() / "a.yaml");
        open.flush();
        disk_.write("b.yaml", service("b"));
        EXPECT_TRUE(becomes({"a", "b"}, FileWatch::kUnfinishedMax / 2))
            << "a.yaml is empty on disk but still being written";
        open << service("c");
    }
    EXPECT_TRUE(becomes({"b", "c"}));
}

TEST_F(FileWatchTest, StopsAtOnce) {
    follow(disk_.path());
    ::eventfd_write(stop_, 1);
    EXPECT_EQ(watch_->wait(stop_), FileWatch::Wake::Stopped);
}

}  // namespace file_watch_test
}  // namespace penstock::manifest
