// SPDX-License-Identifier: Apache-2.0
// The writer of addresses with a test clock, a fake transport and a store of one or two Services.
#include "control/sync/addresses/address_writer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/kube/decode.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::sync {
namespace address_writer_test {

using namespace std::chrono_literals;

std::string service_text(const std::string& name, int version, const std::string& status = "{}") {
    return R"({"kind":"Service","metadata":{"name":")" + name + R"(","namespace":"default","uid":"u-)" +
           name + R"(","resourceVersion":")" + std::to_string(version) +
           R"("},"spec":{"type":"LoadBalancer","loadBalancerClass":"penstock.io/gateway",)"
           R"("clusterIP":"10.96.0.1","ipFamilies":["IPv4"],"ports":[{"port":80}]},"status":)" +
           status + "}";
}

std::string lease_text(const std::string& holder, int version) {
    return R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
           R"("},"spec":{"holderIdentity":")" + holder + R"(","leaseDurationSeconds":15}})";
}

class AddressWriterTest : public testing::Test {
 protected:
    AddressWriterTest() {
        kube::Decoder decoder;
        const auto pool = kube::decode_object(
            decoder, kube::ObjectKind::AddressPool,
            R"({"metadata":{"name":"a","resourceVersion":"1"},"spec":{"addresses":["203.0.113.0/29"]}})");
        EXPECT_TRUE(pool && pool->object);
        kube::Changes changes;
        changes.pools["a"] = std::get<kube::AddressPoolPtr>(*pool->object);
        changes.pools_listed = changes.namespaces_listed = true;
        writer_.note(changes);
    }

    void put(const std::string& name, int version, const std::string& status = "{}") {
        kube::Decoder decoder;
        const auto service =
            kube::decode_object(decoder, kube::ObjectKind::Service, service_text(name, version, status));
        ASSERT_TRUE(service && service->object);
        const auto object = std::get<kube::ServicePtr>(*service->object);
        store_[{"default", name}] = {object, std::to_string(version)};
        kube::Changes changes;
        changes.services[{"default", name}] = object;
        writer_.note(changes);
    }
    void step(std::chrono::milliseconds later = 0ms) {
        now_ += later;
        writer_.advance(now_, kube::WallTime(1'700'000'000s) + (now_ - kube::LeaderElector::Time{}));
    }
    // The Lease is free and this process takes it.
    void become_leader() {
        step();
        transport_.answer(404);
        step();
        transport_.answer(201, lease_text("me", ++lease_version_));
        step();
    }
    // Takes the open requests, answers those for the Lease, and returns the bodies of the others.
    std::vector<std::string> take_writes() {
        std::vector<std::string> bodies;
        while (!transport_.open.empty()) {
            const kube::Request& request = transport_.open.front().request;
            if (request.target.contains("/leases/")) {
                transport_.answer(200, lease_text("me", ++lease_version_));
                continue;
            }
            EXPECT_EQ(request.method, "PATCH");
            EXPECT_TRUE(request.target.ends_with("/status")) << request.target << ": nothing but status";
            bodies.push_back(request.body);
            transport_.answer(200, "{}");
        }
        return bodies;
    }

    kube::test::FakeTransport transport_;
    kube::WriteLimiter limiter_;
    kube::LeaderElector::Time now_{1h};
    std::map<kube::ObjectName, kube::ServiceVersion> store_;
    bool is_relisted_ = false;
    int relists_ = 0;
    int lease_version_ = 0;
    std::vector<kube::Event> events_;
    AddressWriter writer_{
        {.assignment = {}, .election = {.lease = {"penstock", "sync"}, .identity = "me"}},
        transport_,
        limiter_,
        {.service = [this](const kube::ObjectName& name) -> std::optional<kube::ServiceVersion> {
             const auto found = store_.find(name);
             return found == store_.end() ? std::nullopt : std::optional(found->second);
         },
         .pool = [](const std::string&) { return std::optional<kube::PoolVersion>(); },
         .relist = [this] { ++relists_; },
         .is_relisted = [this] { return is_relisted_; },
         .clock = [this] { return now_; },
         .report = [this](kube::Event event) { events_.push_back(std::move(event)); },
         .wake = [] {}},
        [] { return 0.0; }};
};

TEST_F(AddressWriterTest, AFollowerWritesNothing_LEASE001) {
    put("web", 5);
    step();
    transport_.answer(200, lease_text("other", 3));
    step();
    for (int round = 0; round < 7; ++round) {
        step(2s);
        ASSERT_EQ(transport_.open.size(), 1u);
        EXPECT_EQ(transport_.open[0].request.method, "GET");
        transport_.answer(200, lease_text("other", 4 + round));
        step();
    }
    EXPECT_TRUE(events_.empty());
}

TEST_F(AddressWriterTest, ANewLeaderListsTheServicesBeforeItWrites_LB008) {
    put("web", 5);
    become_leader();
    EXPECT_EQ(relists_, 1);
    step(1s);
    EXPECT_TRUE(take_writes().empty());
    is_relisted_ = true;
    step();
    EXPECT_FALSE(take_writes().empty());
}

// A write of a former leader that arrives late has the version from before the first write here.
TEST_F(AddressWriterTest, AServiceIsWrittenOnceBeforeItGetsAnAddress_LB008) {
    put("new", 5);
    put("old", 6,
        R"({"loadBalancer":{"ingress":[{"ip":"203.0.113.1","ipMode":"VIP","ports":[)"
        R"({"port":80,"protocol":"TCP"}]}]},"conditions":[)"
        R"({"type":"penstock.io/Allocated","status":"True","reason":"Allocated","message":"m"}]})");
    is_relisted_ = true;
    become_leader();
    step();
    const std::vector<std::string> first = take_writes();
    ASSERT_EQ(first.size(), 1u) << "the Service that has an address needs none, but: " << first.back();
    EXPECT_TRUE(first[0].contains(R"("resourceVersion":"5")")) << first[0];
    EXPECT_TRUE(first[0].contains("\"reason\":\"Pending\"")) << first[0];
    EXPECT_FALSE(first[0].contains("203.0.113.")) << first[0];
    put("new", 7,
        R"text({"conditions":[{"type":"penstock.io/Allocated","status":"False","reason":"Pending",)text"
        R"text("message":"me evaluates the Service (term 1)"}]})text");
    for (int round = 0; round < 3; ++round) {
        step(100ms);
    }
    std::string all;
    for (const std::string& body : take_writes()) {
        all += body + "\n";
    }
    EXPECT_TRUE(all.contains(R"("resourceVersion":"7")")) << all;
    EXPECT_TRUE(all.contains(R"("ip":"203.0.113.0")")) << all;
}

}  // namespace address_writer_test
}  // namespace penstock::sync
