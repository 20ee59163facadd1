// SPDX-License-Identifier: Apache-2.0
// Address pools from files: the source that reads them, and the thread that follows them.
#include "control/sync/pool_watch.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>

#include "tests/support/log_capture.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::sync {
namespace pool_watch_test {

using test::ScratchFolder;
using Kinds = ManifestSource::Kinds;
using WhenEmpty = ManifestSource::WhenEmpty;

std::string pool(const std::string& name, const std::string& addresses) {
    return "---\napiVersion: penstock.io/v1alpha1\nkind: AddressPool\nmetadata: {name: " + name +
           "}\nspec: {addresses: [" + addresses + "]}\n";
}

class PoolSourceTest : public testing::Test {
 protected:
    PoolSourceTest() {
        auto opened = ManifestSource::open(disk_.path() / "pools", WhenEmpty::Keep, Kinds::AddressPools);
        EXPECT_TRUE(opened);
        source_ = std::move(*opened);
    }
    ~PoolSourceTest() override { ::close(never_stops_); }
    void write(const std::string& name, const std::string& text) { disk_.write("pools/" + name, text); }
    // Reads the folder again after a possible change.
    std::optional<kube::Changes> changes() {
        EXPECT_TRUE(source_->wait(never_stops_));
        auto changes = source_->take_changes();
        if (changes) {
            objects_.apply(*changes);
        }
        return changes;
    }
    [[nodiscard]] std::string last_of(const std::string& name) const {
        const auto found = objects_.pools.find(name);
        return found == objects_.pools.end() ? "" : found->second->pool.ranges.back().last.to_string();
    }

    ScratchFolder disk_;
    const int never_stops_ = ::eventfd(0, EFD_CLOEXEC);
    std::unique_ptr<Source> source_;
    kube::Objects objects_;
};

TEST_F(PoolSourceTest, ReportsAllPoolsAndThenTheDifference_LB007) {
    write("a.yaml", pool("office", "192.0.2.0/24") + pool("lab", "198.51.100.0/24"));
    const auto first = changes();
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->pools_listed);
    EXPECT_EQ(first->pools.size(), 2U);
    EXPECT_FALSE(first->namespaces_listed);
    write("a.yaml", pool("office", "192.0.2.0/25") + pool("lab", "198.51.100.0/24"));
    const auto second = changes();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->pools.size(), 1U);
    EXPECT_FALSE(second->pools_listed) << "reported once";
    EXPECT_EQ(last_of("office"), "192.0.2.127");
    write("a.yaml", pool("office", "192.0.2.0/25"));
    ASSERT_TRUE(changes());
    EXPECT_EQ(last_of("lab"), "");
    EXPECT_EQ(source_->status().collections.size(), 1U);
    EXPECT_EQ(source_->status().collections.at(0).kind, "addresspools");
    EXPECT_EQ(source_->status().collections.at(0).objects, 1U);
}

TEST_F(PoolSourceTest, ABrokenDocumentKeepsItsLastGoodVersion_LB015) {
    const penstock::test::LogCapture log("kube");
    write("a.yaml", pool("office", "192.0.2.0/24") + pool("lab", "198.51.100.0/24"));
    ASSERT_TRUE(changes());
    write("a.yaml", pool("office", "192.0.2.9-192.0.2.1") + pool("lab", "198.51.100.0/25"));
    ASSERT_TRUE(changes());
    EXPECT_EQ(last_of("office"), "192.0.2.255");
    EXPECT_EQ(last_of("lab"), "198.51.100.127") << "the other document is in force";
    EXPECT_EQ(log.count("a.yaml:5: AddressPool office: spec.addresses[0] (\"192.0.2.9-192.0.2.1\"): the last "
                        "address is below the first one"),
              1U);
    EXPECT_EQ(source_->status().collections.at(0).quarantined, 1U);
    EXPECT_EQ(source_->status().collections.at(0).errors.at("decode"), 1U);
    write("a.yaml", "kind: [broken\n");
    EXPECT_FALSE(changes());
    EXPECT_EQ(source_->status().collections.at(0).objects, 2U) << "it may be any of them";
    write("a.yaml", pool("office", "192.0.2.0/26"));
    ASSERT_TRUE(changes());
    EXPECT_EQ(last_of("office"), "192.0.2.63");
    EXPECT_EQ(last_of("lab"), "");
    EXPECT_EQ(source_->status().collections.at(0).last_error, "");
}

TEST_F(PoolSourceTest, AMissingFolderKeepsAllPools_LB014) {
    EXPECT_FALSE(changes());
    EXPECT_EQ(source_->status().trouble, "does not exist; no address pool is known");
    write("a.yaml", pool("office", "192.0.2.0/24"));
    ASSERT_TRUE(changes());
    EXPECT_TRUE(objects_.pools_listed);
    std::filesystem::remove_all(disk_.path() / "pools");
    EXPECT_FALSE(changes());
    EXPECT_EQ(last_of("office"), "192.0.2.255");
    EXPECT_EQ(source_->status().trouble, "does not exist; the objects read before stay in use");
}

TEST_F(PoolSourceTest, OtherKindsAreIgnored_GEN001) {
    const penstock::test::LogCapture log("kube");
    write("a.yaml", pool("office", "192.0.2.0/24") +
                        "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: 5}\n");
    const auto first = changes();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->pools.size(), 1U);
    EXPECT_TRUE(first->services.empty());
    EXPECT_EQ(log.count("Service"), 0U);
    EXPECT_TRUE(source_->status().collections.at(0).errors.empty());
}

TEST(PoolsAmongManifests, AreIgnoredWithAWarningAndNamespacesAreRead_LB007) {
    const penstock::test::LogCapture log("kube");
    const ScratchFolder disk;
    const int never_stops = ::eventfd(0, EFD_CLOEXEC);
    disk.write("a.yaml",
               pool("office", "192.0.2.0/33") +
                   "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: edge}}\n");
    auto source = ManifestSource::open(disk.path(), WhenEmpty::Keep);
    ASSERT_TRUE(source);
    ASSERT_TRUE((*source)->wait(never_stops));
    const auto changes = (*source)->take_changes();
    ASSERT_TRUE(changes);
    EXPECT_TRUE(changes->pools.empty());
    EXPECT_FALSE(changes->pools_listed);
    EXPECT_TRUE(changes->namespaces_listed);
    EXPECT_EQ(changes->namespaces.at("shop")->meta.labels.at("team"), "edge");
    EXPECT_EQ(log.count("a.yaml:2: AddressPool office: is ignored here: pools are read from --address-pools"),
              1U);
    EXPECT_EQ(log.count("192.0.2.0/33"), 0U);
    EXPECT_EQ((*source)->status().collections.at(3).kind, "namespaces");
    EXPECT_EQ((*source)->status().collections.at(3).objects, 1U);
    ::close(never_stops);
}

TEST(PoolWatch, TheThreadReportsEachChange_LB007) {
    const ScratchFolder disk;
    const auto file = disk.write("pools.yaml", pool("office", "192.0.2.0/24"));
    std::mutex mutex;
    kube::Objects objects;
    auto watch = PoolWatch::start(file, WhenEmpty::Keep, [&](kube::Changes changes) {
        const std::lock_guard lock(mutex);
        objects.apply(changes);
    });
    ASSERT_TRUE(watch) << watch.error().what;
    const auto reached = [&](const std::string& last) {
        for (const test::Patience patience;;) {
            {
                const std::lock_guard lock(mutex);
                const auto found = objects.pools.find("office");
                if (found != objects.pools.end() && found->second->pool.ranges[0].last.to_string() == last) {
                    return objects.pools_listed;
                }
            }
            if (!patience.wait()) {
                return false;
            }
        }
    };
    EXPECT_TRUE(reached("192.0.2.255"));
    disk.write("pools.yaml", pool("office", "192.0.2.0/33"));
    (*watch)->reload();
    disk.write("pools.yaml", pool("office", "192.0.2.0/25"));
    EXPECT_TRUE(reached("192.0.2.127"));
    EXPECT_EQ((*watch)->status().source, "address pools " + file.string());
    EXPECT_EQ((*watch)->status().collections.at(0).objects, 1U);
}

}  // namespace pool_watch_test
}  // namespace penstock::sync
