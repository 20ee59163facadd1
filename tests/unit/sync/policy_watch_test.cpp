// SPDX-License-Identifier: Apache-2.0
// A policy file that is followed.
#include "control/sync/policy_watch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>

#include "control/sync/external_ip_policy.hpp"

namespace penstock::sync {
namespace policy_watch_test {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* kShop = "externalIPs:\n- {namespaces: [\"shop\"], cidrs: [\"203.0.113.7/32\"]}\n";

// A file written by a test, and the policies reported by the watch.
class Followed {
 public:
    Followed() {
        folder_ = fs::temp_directory_path() /
                  ("penstock-policy-" + std::to_string(::getpid()) + "-" + std::to_string(++count_));
        fs::create_directories(folder_);
    }
    ~Followed() { fs::remove_all(folder_); }
    [[nodiscard]] fs::path file() const { return folder_ / "policy.yaml"; }

    // Writes as an editor does: a new file is renamed over the old one.
    void write(const std::string& text) const {
        std::ofstream(folder_ / "new") << text;
        fs::rename(folder_ / "new", file());
    }
    void told(const ExternalIpPolicy& policy) {
        const std::lock_guard lock(mutex_);
        told_.push_back(policy);
        news_.notify_all();
    }
    // Waits until the last reported policy has `rules` rules.
    [[nodiscard]] bool hears_of(size_t rules) {
        std::unique_lock lock(mutex_);
        return news_.wait_for(lock, seconds(60),
                              [&] { return !told_.empty() && told_.back().size() == rules; });
    }
    [[nodiscard]] size_t times_told() {
        const std::lock_guard lock(mutex_);
        return told_.size();
    }

 private:
    static inline int count_ = 0;
    fs::path folder_;
    std::mutex mutex_;
    std::condition_variable news_;
    std::vector<ExternalIpPolicy> told_;
};

TEST(PolicyWatch, FollowsTheFileAndKeepsTheOldRulesWhileItIsBad_XIP006) {
    Followed followed;
    followed.write(kShop);
    const auto at_start = read_external_ip_policy(followed.file());
    ASSERT_TRUE(at_start) << at_start.error().what;
    auto watch = PolicyWatch::start(followed.file(), *at_start,
                                    [&](const ExternalIpPolicy& policy) { followed.told(policy); });
    ASSERT_TRUE(watch) << watch.error().what;

    followed.write(std::string(kShop) + "- {namespaces: [web], cidrs: [198.51.100.0/24]}\n");
    EXPECT_TRUE(followed.hears_of(2));
    // Invalid or missing files are not reported: the next report is the next valid file.
    followed.write("externalIPs: 5\n");
    fs::remove(followed.file());
    followed.write("externalIPs: []\n");
    EXPECT_TRUE(followed.hears_of(0));
    EXPECT_EQ(followed.times_told(), 2U);
}

TEST(PolicyWatch, HearsWhatChangedBeforeItBegan_XIP006) {
    Followed followed;
    followed.write(kShop);
    auto watch = PolicyWatch::start(followed.file(), {},
                                    [&](const ExternalIpPolicy& policy) { followed.told(policy); });
    ASSERT_TRUE(watch) << watch.error().what;
    EXPECT_TRUE(followed.hears_of(1));
}

}  // namespace policy_watch_test
}  // namespace penstock::sync
