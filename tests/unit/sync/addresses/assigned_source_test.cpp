// SPDX-License-Identifier: Apache-2.0
// A folder of manifests whose LoadBalancer Services get addresses of pools.
#include "control/sync/addresses/assigned_source.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "control/sync/manifest_source.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::sync {
namespace assigned_source_test {

std::string service(const std::string& name, const std::string& more = "") {
    return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name +
           "}\nspec: {type: LoadBalancer, loadBalancerClass: penstock.io/gateway, ports: [{port: 80}]" +
           more + "}\n";
}

std::string pool(const std::string& name, const std::string& addresses) {
    return "---\napiVersion: penstock.io/v1alpha1\nkind: AddressPool\nmetadata: {name: " + name +
           "}\nspec: {addresses: [" + addresses + "]}\n";
}

class AssignedSourceTest : public testing::Test {
 protected:
    ~AssignedSourceTest() override { ::close(never_stops_); }

    void start() {
        source_.reset();
        objects_ = {};
        auto folder = ManifestSource::open(disk_.path() / "manifests", ManifestSource::WhenEmpty::Keep);
        ASSERT_TRUE(folder);
        auto opened = AssignedSource::open({.objects = std::move(*folder),
                                            .pools = disk_.path() / "pools.yaml",
                                            .allocation_file = disk_.path() / "allocations",
                                            .assignment = {}});
        ASSERT_TRUE(opened) << opened.error().what;
        source_ = std::move(*opened);
    }
    // Follows the source until the Service shows this address; "": none.
    [[nodiscard]] bool becomes(const std::string& name, const std::string& address) {
        for (const test::Patience patience; ip_of(name) != address || !arrived_;) {
            if (!patience.lasts() || !source_->wait(never_stops_)) {
                return false;
            }
            take();
        }
        return true;
    }
    void take() {
        if (auto changes = source_->take_changes()) {
            arrived_ = true;
            EXPECT_TRUE(changes->pools.empty());
            objects_.apply(*changes);
        }
    }
    void remove(const std::string& name) const { std::filesystem::remove(disk_.path() / name); }
    [[nodiscard]] std::string ip_of(const std::string& name) const {
        const auto found = objects_.services.find({"default", name});
        return found == objects_.services.end() || found->second->ingress.empty()
                   ? ""
                   : found->second->ingress.front().ip;
    }

    test::ScratchFolder disk_;
    const int never_stops_ = ::eventfd(0, EFD_CLOEXEC);
    std::unique_ptr<AssignedSource> source_;
    kube::Objects objects_;
    bool arrived_ = false;
};

TEST_F(AssignedSourceTest, GivesAddressesAndKeepsThemOverARestart_LB007_LB008) {
    disk_.write("pools.yaml", pool("edge", "203.0.113.0/29"));
    disk_.write("manifests/b.yaml", service("b"));
    start();
    ASSERT_TRUE(becomes("b", "203.0.113.0"));
    disk_.write("manifests/a.yaml", service("a"));
    ASSERT_TRUE(becomes("a", "203.0.113.1"));
    EXPECT_EQ(read_allocations(disk_.path() / "allocations")->size(), 2u);

    // From scratch, `a` would get the first address.
    start();
    ASSERT_TRUE(becomes("a", "203.0.113.1"));
    EXPECT_EQ(ip_of("b"), "203.0.113.0");
    // The pools are read by a thread of their own.
    for (const test::Patience patience; source_->address_status().phase != "assigning" && patience.lasts();) {
        ASSERT_TRUE(source_->wait(never_stops_));
        take();
    }
    EXPECT_EQ(source_->address_status().addresses.size(), 2u);
    EXPECT_EQ(ip_of("a"), "203.0.113.1");
}

TEST_F(AssignedSourceTest, ShowsSavedAddressesWhileThePoolsAreAbsent_LB008) {
    disk_.write("pools.yaml", pool("edge", "203.0.113.0/29"));
    disk_.write("manifests/a.yaml", service("a"));
    start();
    ASSERT_TRUE(becomes("a", "203.0.113.0"));
    remove("pools.yaml");
    start();
    ASSERT_TRUE(becomes("a", "203.0.113.0"));
    EXPECT_EQ(source_->address_status().phase, "waiting");
}

TEST_F(AssignedSourceTest, FreesTheAddressOfADeletedService_LB013) {
    disk_.write("pools.yaml", pool("edge", "203.0.113.9/32"));
    disk_.write("manifests/a.yaml", service("a"));
    disk_.write("manifests/other.yaml", service("z"));
    start();
    ASSERT_TRUE(becomes("a", "203.0.113.9"));
    EXPECT_EQ(ip_of("z"), "");
    ASSERT_EQ(source_->address_status().refused.size(), 1u);
    EXPECT_EQ(source_->address_status().refused.front().reason, ipam::RefusalReason::PoolExhausted);
    remove("manifests/a.yaml");
    EXPECT_TRUE(becomes("z", "203.0.113.9"));
}

TEST_F(AssignedSourceTest, KeepsThePoolsThatAreInForceWhenNewOnesOverlap_LB015) {
    disk_.write("pools.yaml", pool("edge", "203.0.113.0/29"));
    disk_.write("manifests/a.yaml", service("a"));
    start();
    ASSERT_TRUE(becomes("a", "203.0.113.0"));
    disk_.write("pools.yaml", pool("edge", "203.0.113.0/29") + pool("more", "203.0.113.0/30"));
    for (const test::Patience patience;
         source_->address_status().pools_refused.empty() && patience.lasts();) {
        ASSERT_TRUE(source_->wait(never_stops_));
        take();
    }
    EXPECT_NE(source_->address_status().pools_refused.find("more"), std::string::npos);
    EXPECT_EQ(source_->address_status().pools.size(), 1u);
    EXPECT_EQ(ip_of("a"), "203.0.113.0");
}

TEST_F(AssignedSourceTest, HoldsTheAddressOfAServiceThatCannotBeRead_LB008_GEN003) {
    disk_.write("pools.yaml", pool("edge", "203.0.113.8-203.0.113.9"));
    disk_.write("manifests/a.yaml", service("a"));
    disk_.write("manifests/b.yaml", service("b"));
    start();
    ASSERT_TRUE(becomes("b", "203.0.113.9"));
    // After a restart there is no last good version.
    disk_.write("manifests/a.yaml", service("a", ", externalIPs: 7"));
    start();
    ASSERT_TRUE(becomes("b", "203.0.113.9"));
    disk_.write("manifests/c.yaml", service("c"));
    for (const test::Patience patience; source_->address_status().refused.empty() && patience.lasts();) {
        ASSERT_TRUE(source_->wait(never_stops_));
        take();
    }
    EXPECT_EQ(ip_of("c"), "") << "the only other address belongs to a";
    disk_.write("manifests/a.yaml", service("a"));
    ASSERT_TRUE(becomes("a", "203.0.113.8"));
    remove("manifests/a.yaml");
    EXPECT_TRUE(becomes("c", "203.0.113.8"));
}

TEST_F(AssignedSourceTest, RefusesADamagedAllocationFile_LB008) {
    disk_.write("allocations", "something else\n");
    auto folder = ManifestSource::open(disk_.path() / "manifests", ManifestSource::WhenEmpty::Keep);
    ASSERT_TRUE(folder);
    const auto opened = AssignedSource::open({.objects = std::move(*folder),
                                              .pools = disk_.path() / "pools.yaml",
                                              .allocation_file = disk_.path() / "allocations",
                                              .assignment = {}});
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().what.find("--allocation-file: "), std::string::npos) << opened.error().what;
    EXPECT_NE(opened.error().what.find("line 1"), std::string::npos) << opened.error().what;
}

}  // namespace assigned_source_test
}  // namespace penstock::sync
