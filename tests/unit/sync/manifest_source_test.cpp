// SPDX-License-Identifier: Apache-2.0
// A folder of manifests as shown by penstock-sync's pages and metrics.
#include "control/sync/manifest_source.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/support/log_capture.hpp"
#include "tests/unit/manifest/temporary_folder.hpp"

namespace penstock::sync {
namespace manifest_source_test {

using WhenEmpty = manifest::Folder::WhenEmpty;

std::string service(const std::string& name, const std::string& port) {
    return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name +
           "}\nspec: {ports: [{port: " + port + "}]}\n";
}

class ManifestSourceTest : public testing::Test {
 protected:
    ManifestSourceTest() {
        auto opened = ManifestSource::open(disk_.path(), WhenEmpty::Keep);
        EXPECT_TRUE(opened);
        source_ = std::move(*opened);
    }
    ~ManifestSourceTest() override { ::close(never_stops_); }
    // Reads the folder again after a possible change.
    std::optional<kube::Changes> changes() {
        EXPECT_TRUE(source_->wait(never_stops_));
        return source_->take_changes();
    }
    kube::CollectionStatus services() const { return source_->status().collections.at(0); }

    test::TemporaryFolder disk_;
    const int never_stops_ = ::eventfd(0, EFD_CLOEXEC);
    std::unique_ptr<Source> source_;
};

TEST_F(ManifestSourceTest, WhatIsQuarantinedIsCountedForItsKind_GEN003) {
    disk_.write("web.yaml", service("web", "80"));
    ASSERT_TRUE(changes());
    EXPECT_EQ(services().quarantined, 0U);
    EXPECT_TRUE(services().errors.empty());
    disk_.write("web.yaml", service("web", "\"80\""));
    EXPECT_FALSE(changes()) << "the last good version stays";
    EXPECT_EQ(services().quarantined, 1U);
    EXPECT_EQ(services().errors, (std::map<std::string, uint64_t>{{"decode", 1}}));
    EXPECT_NE(services().last_error.find("web.yaml:5: Service default/web: spec.ports[0].port"),
              std::string::npos)
        << services().last_error;
    for (const kube::CollectionStatus& other : source_->status().collections) {
        if (other.kind != "services") {
            EXPECT_EQ(other.quarantined, 0U) << other.kind;
            EXPECT_EQ(other.last_error, "") << other.kind;
            EXPECT_TRUE(other.errors.empty()) << other.kind;
        }
    }
    disk_.write("web.yaml", service("web", "80"));
    EXPECT_FALSE(changes());
    EXPECT_EQ(services().quarantined, 0U);
    EXPECT_EQ(services().last_error, "");
    EXPECT_EQ(services().errors, (std::map<std::string, uint64_t>{{"decode", 1}})) << "it happened";
}

TEST_F(ManifestSourceTest, AMisspeltFieldIsAWarningAndNoError) {
    const penstock::test::LogCapture log("kube");
    disk_.write(
        "web.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {externalIP: [80.0.0.1], ports: []}\n");
    ASSERT_TRUE(changes());
    EXPECT_EQ(log.count("web.yaml:4: Service default/web: unknown field spec.externalIP is ignored; did you "
                        "mean externalIPs?"),
              1U);
    EXPECT_EQ(services().quarantined, 0U);
    EXPECT_EQ(services().last_error, "");
    EXPECT_TRUE(services().errors.empty());
}

TEST_F(ManifestSourceTest, AFolderThatBecomesEmptyIsTroubleOfTheSource_GEN012) {
    const penstock::test::LogCapture log("kube");
    disk_.write("web.yaml", service("web", "80"));
    ASSERT_TRUE(changes());
    EXPECT_EQ(source_->status().trouble, "");
    std::filesystem::remove(disk_.path() / "web.yaml");
    EXPECT_FALSE(changes());
    EXPECT_TRUE(source_->status().trouble.starts_with("contains no manifest")) << source_->status().trouble;
    EXPECT_EQ(services().objects, 1U);
    EXPECT_EQ(
        log.count(
            "contains no manifest (volume not mounted? to withdraw everything, pass --allow-empty-folder)"),
        1U);
    disk_.write("web.yaml", service("web", "80"));
    EXPECT_FALSE(changes());
    EXPECT_EQ(source_->status().trouble, "");
}

TEST_F(ManifestSourceTest, AFolderThatIsEmptyAtStartSaysNothing_GEN012) {
    EXPECT_FALSE(changes());
    EXPECT_TRUE(source_->status().collections.empty());
    EXPECT_NE(source_->status().trouble.find("gateways keep their state"), std::string::npos);
}

}  // namespace manifest_source_test
}  // namespace penstock::sync
