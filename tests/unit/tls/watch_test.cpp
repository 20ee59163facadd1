// SPDX-License-Identifier: Apache-2.0
#include "control/tls/watch.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/log_capture.hpp"
#include "tls_files.hpp"

namespace penstock::tls {
namespace watch_test {

using std::chrono::milliseconds;

template <typename Condition>
bool until(const Condition& condition) {
    for (int i = 0; i < 3'000 && !condition(); ++i) {
        std::this_thread::sleep_for(milliseconds(10));
    }
    return condition();
}

class TlsWatch : public testing::Test {
 protected:
    WatchOptions options() {
        return {.files = tls.files,
                .names = {},
                .on_change =
                    [this](const Material& material) {
                        const std::lock_guard lock(mutex);
                        told.push_back(material.subject);
                    },
                .period = milliseconds(20)};
    }
    std::vector<std::string> subjects() {
        const std::lock_guard lock(mutex);
        return told;
    }

    test::LogCapture log{"rpc"};
    TlsFolder tls;
    std::mutex mutex;
    std::vector<std::string> told;
};

TEST_F(TlsWatch, RenewedFiles_AreReadAndABrokenOneLeavesTheFormerInUse) {
    tls.issue({.common_name = "first"});
    Watch watch(options());
    ASSERT_TRUE(watch.current());
    EXPECT_EQ(watch.error(), "");
    tls.issue({.common_name = "second"});
    ASSERT_TRUE(until([&] { return watch.current()->subject == "CN=second"; }));
    EXPECT_TRUE(
        until([&] { return log.count("TLS files reloaded: certificate CN=second is valid until ") == 1; }));
    TlsFolder::put(tls.files.key, "half a key");
    ASSERT_TRUE(
        until([&] { return log.count("holds no private key in PEM; the previous ones stay in use") == 1; }));
    EXPECT_EQ(watch.current()->subject, "CN=second");
    EXPECT_NE(watch.error(), "");
    tls.issue({.common_name = "third"});
    ASSERT_TRUE(until([&] { return subjects().size() == 3; }));
    EXPECT_EQ(subjects(), (std::vector<std::string>{"CN=first", "CN=second", "CN=third"}));
    EXPECT_TRUE(until([&] { return watch.error().empty(); }));
}

TEST_F(TlsWatch, FilesThatComeLater_AreUsed) {
    Watch watch(options());
    EXPECT_FALSE(watch.current());
    EXPECT_NE(watch.error().find("cannot be read"), std::string::npos);
    tls.issue({.common_name = "late"});
    EXPECT_TRUE(until([&] { return watch.current() != nullptr; }));
}

TEST_F(TlsWatch, Reload_IsAlwaysLogged) {
    tls.issue({.common_name = "same"});
    WatchOptions slow = options();
    slow.period = std::chrono::hours(1);
    Watch watch(slow);
    watch.reload();
    EXPECT_TRUE(
        until([&] { return log.count("TLS files: unchanged, certificate CN=same is valid until ") == 1; }));
    TlsFolder::put(tls.files.certificate, "");
    watch.reload();
    EXPECT_TRUE(until(
        [&] { return log.count(tls.files.certificate + " is empty; the previous ones stay in use") == 1; }));
}

TEST_F(TlsWatch, AnExpiredCertificate_IsAnErrorInTheLog) {
    tls.issue({.common_name = "old", .is_expired = true});
    Watch watch(options());
    EXPECT_TRUE(until(
        [&] { return log.count("certificate CN=old in " + tls.files.certificate + " expired at ") == 1; }));
}

}  // namespace watch_test
}  // namespace penstock::tls
