// SPDX-License-Identifier: Apache-2.0
// The names that one process writes lead the next one from the former numbers to its own.
#include "control/gateway/tables/former_names.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "control/gateway/tables/names_writer.hpp"
#include "control/gateway/tables/table_folder.hpp"
#include "dataplane/base/check.hpp"
#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace former_names_test {

model::Service plain(const std::string& name, const std::string& vip,
                     const std::vector<std::string>& endpoints) {
    return service(name, {external(vip, 80)}, endpoints);
}

model::Service sticky(const std::vector<std::string>& endpoints) {
    model::Service made = plain("sticky", "192.0.2.9", endpoints);
    made.affinity_timeout_s = 100;
    return made;
}

// A process that compiles configurations and writes names before it would publish them.
class Process {
 public:
    explicit Process(TableFile* file = nullptr) {
        if (file != nullptr) {
            writer_.emplace(*file);
        }
    }
    void run(std::vector<model::Service> services) {
        std::vector<model::ServiceKey> touched;
        for (const auto& [known, service] : wanted_) {
            touched.push_back(known);
        }
        wanted_ = desired(std::move(services));
        for (const auto& [known, service] : wanted_) {
            touched.push_back(known);
        }
        compiler_.run({wanted_, node_ports_, addresses_}, touched);
        if (writer_) {
            ASSERT_TRUE(writer_->write(*compiler_.compiled(), compiler_.changes().services));
        }
    }
    [[nodiscard]] const lb::Service& service_of(const std::string& name) const {
        return *compiler_.compiled()->services.get(key(name))->service;
    }
    [[nodiscard]] BackendId backend(const std::string& name, const std::string& address) const {
        const auto found = compiler_.ids().backends.find({service_of(name).id, ip(address), 8080, {}});
        return found.value_or(BackendId{});
    }
    [[nodiscard]] const Compiler& compiler() const { return compiler_; }

 private:
    DesiredServices wanted_;
    model::NodePortAddresses node_ports_;
    std::vector<model::PortAddress> addresses_;
    Compiler compiler_;
    std::optional<NamesWriter> writer_;
};

class FormerNamesTest : public testing::Test {
 protected:
    FormerNamesTest() {
        std::string name = "/dev/shm/penstock-test-XXXXXX";
        PENSTOCK_CHECK(::mkdtemp(name.data()) != nullptr);
        base_ = name;
        folder_ = std::move(*TableFolder::open(base_ + "/tables"));
        file_ = std::move(*folder_->add(1, {.workers = 1, .table_bytes = 4096, .affinity_bytes = 4096}));
    }
    ~FormerNamesTest() override { std::filesystem::remove_all(base_); }

    [[nodiscard]] adopt::FormerTables translated(const Process& heir) {
        file_->put_in_force({}, "boot");
        former_ = std::move(*folder_->look("boot").newest);
        const auto services = former_->services();
        const auto endpoints = former_->endpoints();
        PENSTOCK_CHECK(services && endpoints);
        return translate_names(*services, *endpoints, *heir.compiler().compiled(), heir.compiler().ids());
    }

    std::string base_;
    std::optional<TableFolder> folder_;
    std::optional<TableFile> file_;
    std::optional<FormerTableFile> former_;
};

TEST_F(FormerNamesTest, ServicesAreFoundByNameUnderTheirNewNumbers) {
    Process before(&*file_), now;
    before.run({plain("a", "192.0.2.1", {"10.0.0.1"})});
    before.run({plain("a", "192.0.2.1", {"10.0.0.1"}), plain("b", "192.0.2.2", {"10.0.0.2"}),
                plain("gone", "192.0.2.3", {"10.0.0.3"})});
    now.run({plain("b", "192.0.2.2", {"10.0.0.2"})});
    now.run({plain("a", "192.0.2.1", {"10.0.0.1"}), plain("b", "192.0.2.2", {"10.0.0.2"})});
    ASSERT_NE(before.service_of("a").id, now.service_of("a").id);
    const auto tables = translated(now);
    ASSERT_TRUE(tables.services);
    ASSERT_EQ(tables.services->size(), 3U);
    EXPECT_EQ((*tables.services)[before.service_of("a").id.value], now.service_of("a").id);
    EXPECT_EQ((*tables.services)[before.service_of("b").id.value], now.service_of("b").id);
    EXPECT_FALSE((*tables.services)[before.service_of("gone").id.value].is_set());
}

TEST_F(FormerNamesTest, AServiceWithAnotherUidIsAnotherService_GEN010) {
    Process before(&*file_), now;
    model::Service old = plain("a", "192.0.2.1", {"10.0.0.1"}), made_again = old;
    old.uid = "one";
    made_again.uid = "two";
    before.run({old});
    now.run({made_again});
    EXPECT_FALSE(translated(now).services->at(before.service_of("a").id.value).is_set());
}

TEST_F(FormerNamesTest, AUidThatChangedWhileTheProcessRanIsTheOneThatCounts_GEN010) {
    Process before(&*file_), now;
    model::Service old = plain("a", "192.0.2.1", {"10.0.0.1"}), made_again = old;
    old.uid = "one";
    made_again.uid = "two";
    before.run({old});
    before.run({made_again});
    now.run({made_again});
    EXPECT_EQ(translated(now).services->at(before.service_of("a").id.value), now.service_of("a").id);
}

TEST_F(FormerNamesTest, PinnedEndpointsKeepNumberAndStayOfTheFormerProcess_AFF005) {
    Process before(&*file_), now;
    before.run({sticky({"10.0.0.1", "10.0.0.2"})});
    before.run({sticky({"10.0.0.1"})});
    before.run({sticky({"10.0.0.1", "10.0.0.2"})});  // 10.0.0.2 is back: another stay
    now.run({sticky({"10.0.0.1", "10.0.0.2"})});
    const auto tables = translated(now);
    ASSERT_EQ(tables.affinity_services.size(), 1U);
    const adopt::FormerAffinity& pinned = tables.affinity_services[0];
    const lb::Service& former = before.service_of("sticky");
    EXPECT_EQ(pinned.owner, former.affinity_owner);
    EXPECT_EQ(pinned.epoch, former.affinity_epoch);
    EXPECT_EQ(pinned.current, now.service_of("sticky").id);
    ASSERT_EQ(pinned.endpoints.size(), 2U);
    for (const lb::Backend& backend : former.sets[0].usable) {
        const auto found =
            std::ranges::find(pinned.endpoints, backend.address, &adopt::FormerAffinity::Endpoint::address);
        ASSERT_NE(found, pinned.endpoints.end());
        EXPECT_EQ(found->former, backend.endpoint);
        EXPECT_EQ(found->stay, backend.stay);
        EXPECT_EQ(found->port, backend.port);
    }
    EXPECT_NE(former.sets[0].usable[0].stay, former.sets[0].usable[1].stay);
}

TEST_F(FormerNamesTest, AnEndpointThatLeftIsNotPinnedAlthoughItIsBackNow_AFF005) {
    Process before(&*file_), now;
    before.run({sticky({"10.0.0.1", "10.0.0.2"})});
    before.run({sticky({"10.0.0.1"})});
    now.run({sticky({"10.0.0.1", "10.0.0.2"})});
    const auto tables = translated(now);
    ASSERT_EQ(tables.affinity_services.size(), 1U);
    ASSERT_EQ(tables.affinity_services[0].endpoints.size(), 1U);
    EXPECT_EQ(tables.affinity_services[0].endpoints[0].address, ip("10.0.0.1"));
}

TEST_F(FormerNamesTest, AServiceThatLostItsAffinityHasNoPinnedClients_AFF007) {
    Process before(&*file_), now;
    model::Service off = sticky({"10.0.0.1"});
    off.affinity_timeout_s = 0;
    before.run({sticky({"10.0.0.1"})});
    before.run({off});
    now.run({sticky({"10.0.0.1"})});
    EXPECT_TRUE(translated(now).affinity_services.empty());
}

TEST_F(FormerNamesTest, AServiceThatWasRemovedHasNoPinnedClientsAlthoughItIsBackNow_AFF007) {
    Process before(&*file_), now;
    before.run({sticky({"10.0.0.1"})});
    before.run({});
    now.run({sticky({"10.0.0.1"})});
    const auto tables = translated(now);
    EXPECT_TRUE(tables.affinity_services.empty());
    EXPECT_TRUE(tables.services->at(0).is_set());  // flows that drained go on
}

TEST_F(FormerNamesTest, AnEndpointWithoutNewFlowsIsKept_EP018) {
    Process before(&*file_), now;
    model::Service web = plain("a", "192.0.2.1", {"10.0.0.1", "10.0.0.2"});
    web.sets[0].endpoints[1].weight = 0;
    now.run({web});
    const auto tables = translated(now);
    ASSERT_EQ(tables.kept_endpoints.size(), 1U);
    EXPECT_EQ(tables.kept_endpoints[0].address, ip("10.0.0.2"));
    EXPECT_EQ(tables.kept_endpoints[0].service, now.service_of("a").id);
    EXPECT_EQ(tables.kept_endpoints[0].backend,
              now.compiler().ids().backends.find(
                  {now.service_of("a").id, ip("10.0.0.2"), tables.kept_endpoints[0].port, web.uid}));
}

TEST_F(FormerNamesTest, DamagedRecordsNameNothing) {
    Process now;
    now.run({sticky({"10.0.0.1"})});
    std::vector<ServiceRecord> services(3);
    std::vector<EndpointRecord> endpoints(3);
    services[1] = *record_of(ServiceId{2},
                             {.key = key("sticky"), .uid = {}, .affinity_owner = {}});  // of another position
    endpoints[0] =
        record_of(BackendId{0}, {.service = ServiceId{4'000'000'000}, .endpoint = {}, .address = {}});
    const auto tables =
        translate_names(services, endpoints, *now.compiler().compiled(), now.compiler().ids());
    ASSERT_EQ(tables.services->size(), 3U);
    for (const ServiceId id : *tables.services) {
        EXPECT_FALSE(id.is_set());
    }
    EXPECT_TRUE(tables.affinity_services.empty());
}

}  // namespace former_names_test
}  // namespace penstock::gateway
