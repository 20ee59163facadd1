// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/store.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace penstock::kube {
namespace store_test {

Service service(const std::string& name, int64_t port = 80) {
    Service made;
    made.meta = {.namespace_name = "default", .name = name, .uid = "uid-" + name};
    made.ports = {{.port = port}};
    return made;
}
EndpointSlice slice(const std::string& name, const std::string& address = "10.1.0.1") {
    EndpointSlice made;
    made.meta = {.namespace_name = "default", .name = name};
    made.address_type = "IPv4";
    made.endpoints = {{.address = address}};
    return made;
}
Node node(const std::string& name) {
    Node made;
    made.meta.name = name;
    return made;
}

DecodedObject good(const Service& object, std::string version = "1") {
    return {.id = {ObjectKind::Service, {object.meta.namespace_name, object.meta.name}},
            .resource_version = std::move(version),
            .object = std::make_shared<const Service>(object)};
}
DecodedObject good(const Node& object) {
    return {.id = {ObjectKind::Node, {"", object.meta.name}}, .object = std::make_shared<const Node>(object)};
}
DecodedObject bad(const std::string& name,
                  const std::string& fault = "spec.ports is an object, must be an array (GEN-003)") {
    return {.id = {ObjectKind::Service, {"default", name}}, .object = std::nullopt, .faults = {fault}};
}
// Endpoints of the core group, as the slices that represent them.
DecodedObject endpoints(const std::string& name, const std::vector<EndpointSlice>& parts) {
    std::vector<EndpointSlicePtr> slices;
    for (const EndpointSlice& part : parts) {
        slices.push_back(std::make_shared<const EndpointSlice>(part));
    }
    return {.id = {ObjectKind::Endpoints, {"default", name}}, .object = std::move(slices)};
}

const ObjectName kWeb{"default", "web"};
const ObjectName kMail{"default", "mail"};

class StoreTest : public testing::Test {
 protected:
    static void list(ObjectTable& table, std::vector<DecodedObject> objects,
                     ObjectTable::Missing missing = ObjectTable::Missing::Erase) {
        table.begin_list();
        for (DecodedObject& object : objects) {
            table.upsert_in_list(std::move(object));
        }
        table.commit_list(missing);
    }
    // Lists all three collections and takes the changes.
    void begin(std::vector<DecodedObject> services) {
        list(store_.services(), std::move(services));
        list(store_.slices(), {});
        list(store_.nodes(), {});
        ASSERT_TRUE(store_.is_listed());
        readers_.apply(store_.take_changes());
        (void)log_.take();
    }

    LogLines log_;
    Store store_{true, log_};
    Objects readers_;
};

TEST_F(StoreTest, ReadersGetNothingBeforeEachCollectionWasListed_GEN012) {
    list(store_.services(), {good(service("web"))});
    EXPECT_TRUE(store_.take_changes().is_empty());
    list(store_.nodes(), {good(node("edge-1"))});
    EXPECT_TRUE(store_.take_changes().is_empty());
    store_.slices().begin_list();
    EXPECT_FALSE(store_.is_listed()) << "a list that is under way is none";
    store_.slices().commit_list(ObjectTable::Missing::Erase);
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_EQ(changes.nodes.size(), 1U);
    EXPECT_TRUE(changes.nodes.contains("edge-1"));
    EXPECT_TRUE(store_.take_changes().is_empty()) << "they have it";
}

TEST_F(StoreTest, NobodyWaitsForNodesThatAreNotUsed_GEN012) {
    Store store(false, log_);
    list(store.services(), {});
    list(store.slices(), {});
    EXPECT_TRUE(store.is_listed());
}

TEST_F(StoreTest, AnUnchangedObjectKeepsItsPointerAndIsNoChange_APISYNC006) {
    begin({good(service("web")), good(service("mail"))});
    const ServicePtr web = readers_.services.at(kWeb);
    list(store_.services(), {good(service("web"), "7"), good(service("mail", 25), "8")});
    const Changes relisted = store_.take_changes();
    EXPECT_EQ(relisted.services.size(), 1U);
    EXPECT_EQ(relisted.services.at(kMail)->ports[0].port, 25);
    store_.services().upsert(good(service("web"), "9"));
    EXPECT_TRUE(store_.take_changes().is_empty()) << "nothing in it that anybody reads";
    EXPECT_EQ(store_.services().life_of(kWeb), (ObjectLife{"uid-web", "9"})) << "but Events name the version";
    readers_.apply(relisted);
    EXPECT_EQ(readers_.services.at(kWeb), web);
}

TEST_F(StoreTest, ARelistErasesWhatItDoesNotName_APISYNC006) {
    begin({good(service("web")), good(service("mail"))});
    list(store_.services(), {good(service("mail"))});
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_EQ(changes.services.at(kWeb), nullptr);
    EXPECT_EQ(store_.services().size(), 1U);
}

TEST_F(StoreTest, AListIsNotSeenBeforeItIsComplete_APISYNC002) {
    begin({good(service("web"))});
    store_.services().begin_list();
    store_.services().upsert_in_list(good(service("mail")));
    EXPECT_TRUE(store_.take_changes().is_empty());
    store_.services().upsert(good(service("web", 8080)));
    EXPECT_EQ(store_.take_changes().services.size(), 1U) << "what is served goes on";
    store_.services().drop_list();
    EXPECT_TRUE(store_.take_changes().is_empty());
    EXPECT_EQ(store_.services().size(), 1U);
}

TEST_F(StoreTest, EventsAboutKnownAndUnknownObjects_APISYNC005) {
    begin({});
    store_.services().erase(kWeb);
    EXPECT_TRUE(store_.take_changes().is_empty()) << "was not there";
    store_.services().upsert(good(service("web")));
    store_.services().upsert(good(service("web", 81)));
    EXPECT_EQ(store_.take_changes().services.at(kWeb)->ports[0].port, 81);
    store_.services().erase(kWeb);
    EXPECT_EQ(store_.take_changes().services.at(kWeb), nullptr);
    EXPECT_EQ(store_.services().life_of(kWeb), std::nullopt);
}

TEST_F(StoreTest, AnotherUidUnderTheSameNameIsAChange_GEN010) {
    begin({good(service("web"))});
    Service reborn = service("web");
    reborn.meta.uid = "another";
    list(store_.services(), {good(reborn)});
    EXPECT_EQ(store_.take_changes().services.at(kWeb)->meta.uid, "another");
}

TEST_F(StoreTest, AQuarantinedObjectKeepsItsLastGoodVersion_GEN003) {
    begin({good(service("web"))});
    store_.services().upsert(bad("web"));
    store_.services().upsert(bad("mail"));
    EXPECT_TRUE(store_.take_changes().is_empty());
    EXPECT_EQ(store_.services().size(), 1U);
    EXPECT_EQ(store_.services().quarantined(), 2U);
    const auto lines = log_.take();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].text,
              "Service default/web is invalid, and its last good version stays in use: spec.ports is an "
              "object, must be an "
              "array (GEN-003)");
    EXPECT_EQ(lines[1].text,
              "Service default/mail is invalid: spec.ports is an object, must be an array (GEN-003)");
    store_.services().upsert(bad("web"));
    EXPECT_TRUE(log_.take().empty()) << "said once";

    store_.services().upsert(good(service("web", 81)));
    EXPECT_EQ(store_.take_changes().services.at(kWeb)->ports[0].port, 81);
    EXPECT_EQ(store_.services().quarantined(), 1U);
    EXPECT_EQ(log_.take().at(0).text, "Service default/web is valid again");
    store_.services().erase(kMail);
    EXPECT_EQ(store_.services().quarantined(), 0U);
}

TEST_F(StoreTest, AddressesOfAQuarantinedServiceAreHeld_GEN003_LB008) {
    const auto with = [](const std::string& address) {
        DecodedObject object = bad("web");
        object.held_addresses = {IpAddr::parse(address).value()};
        return object;
    };
    const auto told = [&] {
        std::string text;
        for (const auto& [name, addresses] : store_.take_changes().held_addresses) {
            text += name.name + ":";
            for (const IpAddr& address : addresses) {
                text += " " + address.to_string();
            }
        }
        return text;
    };
    list(store_.services(), {with("192.0.2.1")});
    list(store_.slices(), {});
    list(store_.nodes(), {});
    EXPECT_EQ(told(), "web: 192.0.2.1") << "of the first list";
    store_.services().upsert(with("192.0.2.1"));
    EXPECT_EQ(told(), "");
    list(store_.services(), {with("192.0.2.1")});
    EXPECT_EQ(told(), "");
    store_.services().upsert(with("192.0.2.2"));
    EXPECT_EQ(told(), "web: 192.0.2.2");
    EXPECT_EQ(log_.take().size(), 1U) << "said once";
    store_.services().upsert(good(service("web")));
    EXPECT_EQ(told(), "web:");
    store_.services().upsert(with("192.0.2.3"));
    EXPECT_EQ(told(), "web: 192.0.2.3") << "the last good version does not have it";
    list(store_.services(), {});
    EXPECT_EQ(told(), "web:");
    store_.services().upsert(with("192.0.2.4"));
    store_.services().erase(kWeb);
    EXPECT_EQ(told(), "web:");
}

TEST_F(StoreTest, ARelistKeepsAQuarantinedObjectThatItNames_GEN003) {
    begin({good(service("web")), good(service("mail"))});
    list(store_.services(), {bad("web"), bad("new")});
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_EQ(changes.services.at(kMail), nullptr);
    EXPECT_EQ(store_.services().size(), 1U);
    EXPECT_EQ(store_.services().quarantined(), 2U);
    EXPECT_EQ(log_.take().size(), 2U);
    list(store_.services(), {bad("web"), bad("new")});
    EXPECT_TRUE(log_.take().empty()) << "said once";
    list(store_.services(), {});
    EXPECT_EQ(store_.take_changes().services.at(kWeb), nullptr) << "the server no longer names it";
    EXPECT_EQ(store_.services().quarantined(), 0U);
}

TEST_F(StoreTest, WithinOneStreamedListTheLastGoodVersionStays_GEN003) {
    begin({});
    store_.services().begin_list();
    store_.services().upsert_in_list(good(service("web", 81)));
    store_.services().upsert_in_list(bad("web"));
    store_.services().upsert_in_list(good(service("mail")));
    store_.services().erase_in_list(kMail);
    store_.services().commit_list(ObjectTable::Missing::Erase);
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_EQ(changes.services.at(kWeb)->ports[0].port, 81);
}

TEST_F(StoreTest, AListWithObjectsOfNoNameErasesNothing_GEN003) {
    begin({good(service("web"))});
    store_.services().upsert(bad("web"));
    (void)log_.take();
    list(store_.services(), {good(service("mail"))}, ObjectTable::Missing::Keep);
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_NE(changes.services.at(kMail), nullptr);
    EXPECT_EQ(store_.services().size(), 2U);
    EXPECT_EQ(store_.services().quarantined(), 1U);
    list(store_.services(), {good(service("web"))}, ObjectTable::Missing::Keep);
    EXPECT_EQ(store_.services().quarantined(), 0U);
}

TEST_F(StoreTest, EndpointsAreTheSlicesThatTheyStandFor_EP015) {
    begin({});
    ObjectTable& slices = store_.slices();
    slices.upsert(endpoints("web", {slice("web-0"), slice("web-1")}));
    slices.upsert(endpoints("mail", {slice("mail-0")}));
    EXPECT_EQ(store_.take_changes().slices.size(), 3U);
    slices.upsert(endpoints("web", {slice("web-0", "10.1.0.9")}));
    Changes changes = store_.take_changes();
    EXPECT_EQ(changes.slices.size(), 2U);
    EXPECT_NE(changes.slices.at({"default", "web-0"}), nullptr);
    EXPECT_EQ(changes.slices.at({"default", "web-1"}), nullptr);
    slices.erase(kWeb);
    EXPECT_EQ(store_.take_changes().slices.at({"default", "web-0"}), nullptr);
    list(slices, {{.id = {ObjectKind::Endpoints, kMail}, .object = std::nullopt, .faults = {"no"}},
                  endpoints("new", {slice("new-0")})});
    changes = store_.take_changes();
    EXPECT_EQ(changes.slices.size(), 1U) << "mail is quarantined and stays";
    EXPECT_TRUE(changes.slices.contains({"default", "new-0"}));
    slices.upsert(endpoints("mail", {}));
    EXPECT_EQ(store_.take_changes().slices.at({"default", "mail-0"}), nullptr);
    EXPECT_EQ(slices.size(), 1U);
}

TEST_F(StoreTest, AListOfEndpointsWithoutNamesKeepsWholeObjects_GEN003) {
    begin({});
    list(store_.slices(),
         {endpoints("web", {slice("web-0"), slice("web-1")}), endpoints("mail", {slice("mail-0")})});
    (void)store_.take_changes();
    list(store_.slices(), {endpoints("web", {slice("web-0")})}, ObjectTable::Missing::Keep);
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.slices.size(), 1U);
    EXPECT_EQ(changes.slices.at({"default", "web-1"}), nullptr);
    EXPECT_EQ(store_.slices().size(), 2U);
}

TEST_F(StoreTest, ManifestsFeedTheSameStore_GEN006) {
    ObjectSet folder;
    folder.services.emplace(kWeb, service("web"));
    folder.services.emplace(kMail, service("mail"));
    folder.nodes.emplace("edge-1", node("edge-1"));
    store_.replace(folder);
    ASSERT_TRUE(store_.is_listed());
    readers_.apply(store_.take_changes());
    EXPECT_EQ(readers_.services.size(), 2U);
    EXPECT_EQ(*readers_.nodes.at("edge-1"), node("edge-1"));

    store_.replace(folder);
    EXPECT_TRUE(store_.take_changes().is_empty());
    folder.services.erase(kWeb);
    folder.slices.emplace(ObjectName{"default", "mail-1"}, slice("mail-1"));
    store_.replace(folder);
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_EQ(changes.services.at(kWeb), nullptr);
    EXPECT_EQ(changes.slices.size(), 1U);
    EXPECT_TRUE(changes.nodes.empty());
}

}  // namespace store_test
}  // namespace penstock::kube
