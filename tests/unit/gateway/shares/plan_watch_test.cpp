// SPDX-License-Identifier: Apache-2.0
// A plan of shares that is followed.
#include "control/gateway/shares/plan_watch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/shares/plan_text.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::gateway {
namespace plan_watch_test {

std::string text(int version, const std::string& primary = "edge-1") {
    return "version " + std::to_string(version) +
           "\ngateway edge-1\ngateway edge-2\nshares 2\nshare 0 primary=" + primary +
           "\nshare 1 primary=edge-2\nend\n";
}

shares::Plan plan(const std::string& text) {
    return shares::parse_plan(text).value();
}

TEST(PlanWatch, AVersionHasOneContentAndDoesNotReturn) {
    EXPECT_EQ(why_not_newer(plan(text(7)), plan(text(8, "edge-2"))), "");
    EXPECT_EQ(why_not_newer(plan(text(7)), plan(text(7))), "");
    EXPECT_EQ(why_not_newer(plan(text(7)), plan(text(7, "edge-2"))),
              "version 7 is in force with another content: raise the number with each change");
    EXPECT_EQ(why_not_newer(plan(text(7)), plan(text(6))),
              "version 6 is older than version 7, which is in force");
}

TEST(PlanWatch, RolesAreListedForALog) {
    EXPECT_EQ(roles_text(GatewayShares(plan(text(7)), "edge-1")),
              "version 7: primary of shares: 0; heir of shares: 1");
    EXPECT_EQ(roles_text(GatewayShares(plan(text(7)), "edge-3")),
              "version 7: primary of shares: none; heir of shares: none");
}

class PlanFile : public testing::Test {
 protected:
    void write(const std::string& content) {
        const auto fresh = folder.path() / "fresh";
        std::ofstream(fresh) << content;
        std::filesystem::rename(fresh, file);
    }
    [[nodiscard]] Result<std::unique_ptr<PlanWatch>> open(const std::string& name = "edge-1") const {
        return PlanWatch::open({.file = file, .saved = saved, .gateway_name = name});
    }
    std::unique_ptr<PlanWatch> follow() {
        auto watch = open();
        EXPECT_TRUE(watch) << watch.error().what;
        EXPECT_TRUE((*watch)->start([this](const std::shared_ptr<const GatewayShares>& next) {
            const std::lock_guard lock(mutex);
            seen.push_back(next->plan());
            changed.notify_all();
        }));
        return std::move(*watch);
    }
    bool wait_for(size_t count) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, std::chrono::seconds(30), [&] { return seen.size() >= count; });
    }
    static void wait_for_log(const test::LogCapture& log, const std::string& line, size_t count = 1) {
        for (int i = 0; i < 3'000 && log.count(line) < count; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        EXPECT_EQ(log.count(line), count) << line;
    }

    test::ScratchFolder folder;
    const std::filesystem::path file = folder.path() / "shares";
    const std::string saved = folder.path() / "last-good.pb.shares";
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<shares::Plan> seen;
};

TEST_F(PlanFile, IsFollowedAndAWrongOneLeavesThePlanInForce) {
    const test::LogCapture log("control");
    write(text(7));
    const auto watch = follow();
    EXPECT_EQ(watch->shares()->plan(), plan(text(7)));
    write(text(8, "edge-2"));
    ASSERT_TRUE(wait_for(1));
    EXPECT_EQ(seen[0], plan(text(8, "edge-2")));
    EXPECT_EQ(watch->shares()->plan(), seen[0]);
    write("version 9\nend\n");
    wait_for_log(log, "the plan of shares is unchanged: " + file.string() + ": no gateway");
    EXPECT_EQ(watch->fault(), file.string() + ": no gateway");
    write(text(7));
    wait_for_log(log, "the plan of shares is unchanged: " + file.string() +
                          ": version 7 is older than version 8, which is in force");
    write(text(8));
    wait_for_log(log, "version 8 is in force with another content");
    write(text(10));
    ASSERT_TRUE(wait_for(2));
    EXPECT_EQ(seen[1].version, 10U);
    EXPECT_EQ(watch->fault(), "");
    EXPECT_EQ(log.count(file.string() + " is well again"), 1U);
}

// As a ConfigMap volume changes: a link to a folder is replaced.
TEST_F(PlanFile, IsFollowedThroughLinks) {
    for (const int version : {7, 8}) {
        const auto data = folder.path() / ("data-" + std::to_string(version));
        std::filesystem::create_directory(data);
        std::ofstream(data / "shares") << text(version);
    }
    const auto link = folder.path() / "..data";
    std::filesystem::create_symlink("data-7", link);
    std::filesystem::create_symlink("..data/shares", file);
    const auto watch = follow();
    std::filesystem::create_symlink("data-8", folder.path() / "new");
    const auto replaced = std::chrono::steady_clock::now();
    std::filesystem::rename(folder.path() / "new", link);
    ASSERT_TRUE(wait_for(1));
    EXPECT_LT(std::chrono::steady_clock::now() - replaced, FileWatch::kAuditPeriod) << "not by the audit";
    EXPECT_EQ(seen[0].version, 8U);
}

TEST_F(PlanFile, AReloadLogsItsResult) {
    const test::LogCapture log("control");
    write(text(7));
    const auto watch = follow();
    watch->reload();
    wait_for_log(log, "plan of shares, unchanged, version 7: primary of shares: 0; heir of shares: 1");
    std::filesystem::remove(file);
    wait_for_log(log, "the plan of shares is unchanged: " + file.string() + ": no such file");
    watch->reload();
    wait_for_log(log, "the plan of shares is unchanged: " + file.string() + ": no such file", 2);
    EXPECT_TRUE(seen.empty());
}

TEST_F(PlanFile, ARestartContinuesWithThePlanThatWasInForce) {
    EXPECT_EQ(open().error().what, file.string() + ": no such file") << "no plan was ever in force";
    write(text(8));
    ASSERT_TRUE(open());
    for (const std::string& content :
         {std::string(), text(7), text(8, "edge-2"), std::string("version 9\n")}) {
        const test::LogCapture log("control");
        content.empty() ? void(std::filesystem::remove(file)) : write(content);
        const auto watch = open();
        ASSERT_TRUE(watch) << watch.error().what;
        EXPECT_EQ((*watch)->shares()->plan(), plan(text(8))) << content;
        EXPECT_TRUE((*watch)->fault().starts_with(file.string() + ": ")) << (*watch)->fault();
        EXPECT_EQ(log.count("the plan of shares is unchanged: " + file.string()), 1U);
    }
    write(text(9));
    EXPECT_EQ((*open())->shares()->plan().version, 9U);
    EXPECT_EQ(shares::read_plan(saved)->version, 9U);
}

TEST_F(PlanFile, ADamagedSavedPlanCountsAsNone) {
    write(text(7));
    std::ofstream(saved) << "version";
    const test::LogCapture log("control");
    const auto watch = open();
    ASSERT_TRUE(watch);
    EXPECT_EQ((*watch)->shares()->plan().version, 7U);
    EXPECT_EQ(log.count("the saved plan of shares cannot be used: " + saved + ": "), 1U);
    EXPECT_EQ(shares::read_plan(saved)->version, 7U) << "and is replaced";
}

TEST_F(PlanFile, APlanThatWasNotSavedIsSavedLater) {
    write(text(7));
    std::filesystem::create_directories(saved + "/x");  // cannot be replaced by a file
    const auto watch = follow();
    EXPECT_TRUE(watch->fault().starts_with("not saved: ")) << watch->fault();
    std::filesystem::remove_all(saved);
    watch->reload();
    for (int i = 0; i < 3'000 && !watch->fault().empty(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(watch->fault(), "");
    EXPECT_EQ(shares::read_plan(saved)->version, 7U);
}

TEST_F(PlanFile, AGatewayThatIsNotInThePlanIsWarnedOf) {
    write(text(7));
    const test::LogCapture log("control");
    ASSERT_TRUE(open("edge-3"));
    EXPECT_EQ(log.count("gateway edge-3 is not in the plan of shares: it announces no VIP"), 1U);
}

TEST_F(PlanFile, APlanThatThisGatewayCannotApplyIsRefused) {
    const auto options = [&] {
        return PlanWatch::Options{
            .file = file, .saved = saved, .gateway_name = "edge-1", .obstacle = [](const shares::Plan& plan) {
                return plan.version == 8 ? std::string("too many SNAT addresses") : std::string();
            }};
    };
    write(text(8));
    const auto none = PlanWatch::open(options());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().what, file.string() + ": too many SNAT addresses");
    write(text(7));
    ASSERT_TRUE(PlanWatch::open(options()));
    write(text(8));
    const auto watch = PlanWatch::open(options());
    ASSERT_TRUE(watch);
    EXPECT_EQ((*watch)->shares()->plan().version, 7U) << "the saved plan stays in force";
    EXPECT_EQ((*watch)->fault(), file.string() + ": too many SNAT addresses");
}

}  // namespace plan_watch_test
}  // namespace penstock::gateway
