// SPDX-License-Identifier: Apache-2.0
// A file of prefixes that is followed.
#include "control/gateway/rules/blocklist_watch.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "control/gateway/rules/blocklist.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::gateway {
namespace blocklist_watch_test {

const std::vector<IpAddr> kOwn{IpAddr::v4(192, 0, 2, 1), *IpAddr::parse("2001:db8::1")};

class BlocklistFile : public testing::Test {
 protected:
    void write(const std::string& text) {
        // Replaced by rename, as by editors and ConfigMap volumes: the file is never incomplete.
        const auto fresh = folder.path() / "fresh";
        std::ofstream(fresh) << text;
        std::filesystem::rename(fresh, file);
    }
    std::unique_ptr<BlocklistWatch> follow(route::PrefixSet known) {
        auto watch =
            BlocklistWatch::start({.file = file,
                                   .known = std::move(known),
                                   .own_addresses = [] { return kOwn; },
                                   .on_change =
                                       [this](const route::PrefixSet& list) {
                                           const std::lock_guard lock(mutex);
                                           told.emplace_back(list.prefixes().begin(), list.prefixes().end());
                                           changed.notify_all();
                                       }});
        EXPECT_TRUE(watch) << watch.error().what;
        return std::move(*watch);
    }
    bool wait_for(size_t count) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, std::chrono::seconds(30), [&] { return told.size() >= count; });
    }

    test::ScratchFolder folder;
    const std::filesystem::path file = folder.path() / "blocklist";
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::vector<Prefix>> told;
};

TEST_F(BlocklistFile, IsReadWithItsNameBeforeEachError) {
    write("198.51.100.0/24\n");
    EXPECT_TRUE(read_blocklist(file, kOwn));
    write("nonsense\n");
    EXPECT_EQ(read_blocklist(file, kOwn).error().what,
              file.string() + ": line 1: \"nonsense\" is neither a prefix nor an address");
    EXPECT_EQ(read_blocklist(folder.path() / "none", kOwn).error().code, Errc::NotFound);
    EXPECT_EQ(read_blocklist(folder.path(), kOwn).error().code, Errc::NotFound);
}

TEST_F(BlocklistFile, IsFollowedAndABrokenOneLeavesTheLastGoodList) {
    test::LogCapture log("control");
    write("198.51.100.0/24\n");
    auto known = read_blocklist(file, kOwn);
    ASSERT_TRUE(known);
    const auto watch = follow(*known);
    write("203.0.113.0/24\n");
    ASSERT_TRUE(wait_for(1));
    write("203.0.113.0/24\n10.0.0.0\n192.0.2.0/30\n");  // the last line is the gateway's own network
    for (int i = 0; i < 3'000 && log.count("192.0.2.0/30 contains") == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(
        log.count("blocked sources are unchanged: " + file.string() + ": line 3: 192.0.2.0/30 contains"), 1U);
    write("10.0.0.0/8\n");
    ASSERT_TRUE(wait_for(2));
    EXPECT_EQ(told[0], std::vector{*Prefix::parse("203.0.113.0/24")});
    EXPECT_EQ(told[1], std::vector{*Prefix::parse("10.0.0.0/8")});
}

// An editor that writes in place. A file that stays open for kUnfinishedMax is read nevertheless. An attempt
// that a busy machine has delayed beyond that proves nothing and is repeated.
TEST_F(BlocklistFile, IsNotReadWhileItIsBeingWritten) {
    using Clock = std::chrono::steady_clock;
    write("198.51.100.0/24\n");
    auto known = read_blocklist(file, kOwn);
    ASSERT_TRUE(known);
    const auto watch = follow(*known);
    for (int attempt = 1; attempt <= 20; ++attempt) {
        const std::string third = std::to_string(attempt);
        const auto begin = Clock::now();
        {
            std::ofstream half(file);
            half << "203.0." + third + ".0/24\n" << std::flush;
            std::this_thread::sleep_for(FileWatch::kUnfinishedMax / 3);
            half << "10.0." + third + ".0/24\n";
        }
        const bool in_time = Clock::now() - begin < FileWatch::kUnfinishedMax;
        const std::vector<Prefix> whole = {*Prefix::parse("10.0." + third + ".0/24"),
                                           *Prefix::parse("203.0." + third + ".0/24")};
        std::unique_lock lock(mutex);
        ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(30),
                                     [&] { return !told.empty() && told.back() == whole; }));
        if (in_time) {
            EXPECT_EQ(told.size(), 1U) << "half a list was put in force";
            return;
        }
        told.clear();
    }
    FAIL() << "no attempt of 20 took less than a second";
}

TEST_F(BlocklistFile, Reload_IsAlwaysLogged) {
    test::LogCapture log("control");
    const auto until_logged = [&](const std::string& text, size_t times) {
        for (int i = 0; i < 3'000 && log.count(text) < times; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return log.count(text);
    };
    write("198.51.100.0/24\n");
    const auto watch = follow(*read_blocklist(file, kOwn));
    for (size_t times = 1; times <= 2; ++times) {
        watch->reload();
        ASSERT_EQ(until_logged(file.string() + ": unchanged, 1 prefixes are blocked", times), times);
    }
    write("nonsense\n");
    const std::string mistake = "blocked sources are unchanged: " + file.string() + ": line 1";
    ASSERT_EQ(until_logged(mistake, 1), 1U);
    watch->reload();
    EXPECT_EQ(until_logged(mistake, 2), 2U) << "a mistake that was logged before is logged again on request";
    EXPECT_TRUE(told.empty());
}

}  // namespace blocklist_watch_test
}  // namespace penstock::gateway
