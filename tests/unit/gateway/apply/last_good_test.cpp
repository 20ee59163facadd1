// SPDX-License-Identifier: Apache-2.0
// The last good configuration on disk: it is restored unchanged, or refused with the reason.
#include "control/gateway/apply/last_good.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "control/gateway/apply/state_saver.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace last_good_test {

namespace fs = std::filesystem;

class LastGoodFile : public testing::Test {
 protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "penstock-last-good-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        path_ = (folder_ / "state" / "last-good.pb").string();
    }
    void TearDown() override { fs::remove_all(folder_); }

    static DesiredState state(const std::string& endpoint = "10.0.0.1") {
        DesiredState out{{"edge-sync-1", 42},
                         desired({service("web", {external("192.0.2.1", 80), node_port(30080)}, {endpoint})}),
                         {}};
        out.environment = {.node_ports = {{net("10.0.0.0/8")}, true, {ip("10.1.1.1")}},
                           .pod_cidrs = {net("10.244.0.0/16")},
                           .rejects_closed_vip_ports = true,
                           .node_eligible = false,
                           .vips_withheld = "Node edge-1 is excluded"};
        return out;
    }
    std::string bytes() const {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void overwrite(const std::string& bytes) const {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    }

    fs::path folder_;
    std::string path_;
};

TEST_F(LastGoodFile, ComesBackAsItWas) {
    ASSERT_TRUE(write_last_good(path_, state()));
    const auto read = read_last_good(path_);
    ASSERT_TRUE(read) << read.error().what;
    ASSERT_TRUE(*read);
    EXPECT_EQ((*read)->state.version, state().version);
    EXPECT_EQ((*read)->state.environment, state().environment);
    ASSERT_EQ((*read)->state.services.size(), 1U);
    EXPECT_EQ(*(*read)->state.services.at(key("web")), *state().services.at(key("web")));
    EXPECT_TRUE((*read)->refused.empty());
}

TEST_F(LastGoodFile, EndpointsOfTheOtherFamilyComeBack_ANN32) {
    DesiredState before = state();
    model::Service six = service("six", {external("2001:db8::1", 80)}, {"10.0.0.1"});
    six.sets[0].family = IpFamily::V6;
    six.sets[0].translates_family = true;
    before.services = desired({six});
    ASSERT_TRUE(write_last_good(path_, before));
    const auto read = read_last_good(path_);
    ASSERT_TRUE(read) << read.error().what;
    ASSERT_TRUE((*read)->refused.empty());
    EXPECT_EQ(*(*read)->state.services.at(key("six")), six);
}

TEST_F(LastGoodFile, NoFileIsNoError) {
    const auto read = read_last_good(path_);
    ASSERT_TRUE(read);
    EXPECT_FALSE(*read);
}

TEST_F(LastGoodFile, OnlyTheOwnerMayReadItWhateverTheUmask) {
    const mode_t former = umask(0);
    ASSERT_TRUE(write_last_good(path_, state()));
    umask(former);
    struct stat facts{};
    ASSERT_EQ(stat(path_.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0600U);
}

TEST_F(LastGoodFile, EveryDamagedByteIsFoundAndTheFileNamed) {
    ASSERT_TRUE(write_last_good(path_, state()));
    const std::string good = bytes();
    for (size_t i = 0; i < good.size(); ++i) {
        std::string damaged = good;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
        overwrite(damaged);
        const auto read = read_last_good(path_);
        ASSERT_FALSE(read) << "byte " << i << " of " << good.size();
        ASSERT_EQ(read.error().code, Errc::Corrupt) << "byte " << i;
        ASSERT_TRUE(read.error().what.starts_with(path_ + ": ")) << read.error().what;
    }
}

TEST_F(LastGoodFile, EveryTruncationAndAnAppendedByteAreFound) {
    ASSERT_TRUE(write_last_good(path_, state()));
    const std::string good = bytes();
    for (size_t length = 0; length < good.size(); ++length) {
        overwrite(good.substr(0, length));
        ASSERT_EQ(read_last_good(path_).error().code, Errc::Corrupt) << "cut to " << length;
    }
    overwrite(good + "x");
    EXPECT_EQ(read_last_good(path_).error().code, Errc::Corrupt);
}

TEST_F(LastGoodFile, AFailedWriteLeavesTheFormerFile) {
    ASSERT_TRUE(write_last_good(path_, state()));
    const std::string before = bytes();
    // The temporary file cannot be created if a folder has its name.
    fs::create_directories(path_ + ".new/in-the-way");
    const auto written = write_last_good(path_, state("10.0.0.2"));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Errc::Unavailable);
    EXPECT_EQ(bytes(), before);
}

TEST_F(LastGoodFile, LeftoversOfACrashDoNotMatter) {
    fs::create_directories(fs::path(path_).parent_path());
    std::ofstream(path_ + ".new") << "half a file";
    ASSERT_TRUE(write_last_good(path_, state()));
    EXPECT_TRUE(read_last_good(path_)->has_value());
    EXPECT_FALSE(fs::exists(path_ + ".new"));
}

TEST_F(LastGoodFile, SomethingElseUnderTheNameIsRefusedByName) {
    fs::create_directories(path_);
    EXPECT_FALSE(read_last_good(path_));
}

TEST_F(LastGoodFile, TheSaverWritesTheNewestBeforeItEnds) {
    const auto wanted = state();
    Compiler compiler;
    compiler.run({wanted.services, wanted.environment.node_ports, {}}, std::vector{key("web")});
    const auto in_force = compiler.compiled();
    {
        StateSaver saver(path_);
        for (uint64_t n = 1; n <= 20; ++n) {
            saver.save({.version = {"sync", n}, .compiled = in_force, .environment = {}});
        }
    }
    const auto read = read_last_good(path_);
    EXPECT_EQ((*read)->state.version.number, 20U);
    EXPECT_TRUE((*read)->state.services.contains(key("web")));
}

TEST_F(LastGoodFile, AFailedSave_IsRepeatedUntilThereIsRoom) {
    test::LogCapture log("control");
    Compiler compiler;
    compiler.run({state().services, state().environment.node_ports, {}}, std::vector{key("web")});
    fs::create_directories(path_ + ".new/in-the-way");
    StateSaver saver(path_);
    const auto until = [&](const auto& condition) {
        for (int i = 0; i < 3'000 && !condition(saver.status()); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return saver.status();
    };
    saver.save({.version = {"sync", 1}, .compiled = compiler.compiled(), .environment = {}});
    const SaveStatus failing = until([](const SaveStatus& status) { return status.failures >= 2; });
    EXPECT_GE(failing.failures, 2U);
    EXPECT_TRUE(failing.failing_since);
    EXPECT_NE(failing.error.find(path_ + ".new: cannot be created: "), std::string::npos) << failing.error;
    EXPECT_FALSE(read_last_good(path_)->has_value());
    saver.save({.version = {"sync", 2}, .compiled = compiler.compiled(), .environment = {}});
    fs::remove_all(path_ + ".new");
    const SaveStatus well = until([](const SaveStatus& status) { return !status.failing_since; });
    EXPECT_FALSE(well.failing_since);
    EXPECT_EQ(well.error, "");
    EXPECT_EQ((*read_last_good(path_))->state.version.number, 2U);
    EXPECT_EQ(log.count("the last good configuration is saved again"), 1U);
}

TEST_F(LastGoodFile, ASaverThatCannotWrite_EndsAllTheSame) {
    Compiler compiler;
    fs::create_directories(path_ + ".new/in-the-way");
    StateSaver saver(path_);
    saver.save({.version = {"sync", 1}, .compiled = compiler.compiled(), .environment = {}});
}

}  // namespace last_good_test
}  // namespace penstock::gateway
