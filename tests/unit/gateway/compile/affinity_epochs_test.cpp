// SPDX-License-Identifier: Apache-2.0
// Validity of affinity entries over configurations, and the changes that end them.
#include "control/gateway/compile/affinity_epochs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace affinity_epochs_test {

model::Service sticky(const std::vector<std::string>& endpoints = {"10.0.0.1", "10.0.0.2"}) {
    model::Service web = service("web", {external("192.0.2.8", 80)}, endpoints);
    web.affinity_timeout_s = 100;
    return web;
}

// Compiles one configuration after the other.
class CompilerTest : public testing::Test {
 protected:
    void run(std::vector<model::Service> services, const std::vector<model::ServiceKey>& forgotten) {
        std::vector<model::ServiceKey> touched;
        for (const auto& [known, service] : wanted_) {
            touched.push_back(known);
        }
        wanted_ = desired(std::move(services));
        for (const auto& [known, service] : wanted_) {
            touched.push_back(known);
        }
        compiler_.run({wanted_, node_ports_, addresses_, forgotten}, touched);
    }

    DesiredServices wanted_;
    model::NodePortAddresses node_ports_;
    std::vector<model::PortAddress> addresses_;
    Compiler compiler_;
};

class AffinityEpochsTest : public CompilerTest {
 protected:
    const lb::Service& apply(const model::Service& web, std::vector<model::Service> others = {}) {
        others.push_back(web);
        return apply_all(std::move(others));
    }
    const lb::Service& apply_all(std::vector<model::Service> services,
                                 std::vector<model::ServiceKey> forgotten = {}) {
        run(std::move(services), forgotten);
        const auto* programmed = compiler_.compiled()->services.get(key("web"));
        return programmed == nullptr ? none_ : *programmed->service;
    }
    static uint16_t stay_of(const lb::Service& service, const std::string& address) {
        for (const lb::Backend& backend : service.sets.at(0).usable) {
            if (backend.address == ip(address)) {
                return backend.stay;
            }
        }
        ADD_FAILURE() << address << " is no backend";
        return 0;
    }

    lb::Service none_;
};

TEST_F(AffinityEpochsTest, TheTimeoutReachesTheWorkersAndEachSetKnowsItsBackends_AFF001) {
    const lb::Service& web = apply(sticky());
    EXPECT_EQ(web.affinity_timeout_s, 100u);
    ASSERT_EQ(web.sets[0].usable.size(), 2u);
    for (uint32_t i = 0; i < 2; ++i) {
        EXPECT_EQ(web.sets[0].pinned_position(web.sets[0].usable[i].id), i);
    }
    EXPECT_EQ(web.sets[0].pinned_position(BackendId{77}), lb::BackendPositions::kNone);
}

TEST_F(AffinityEpochsTest, AServiceWithoutItPaysForNothing) {
    const lb::Service& web = apply(service("web", {external("192.0.2.8", 80)}, {"10.0.0.1"}));
    EXPECT_FALSE(web.has_affinity());
    EXPECT_EQ(web.affinity_epoch, 0u);
    EXPECT_TRUE(web.sets[0].positions.empty());
    EXPECT_TRUE(web.sets[0].by_id.empty());
}

TEST_F(AffinityEpochsTest, EndpointsTimeoutAndNeighboursChangeWithoutANewEpoch_AFF008_AFF011) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    EXPECT_EQ(apply(sticky({"10.0.0.1", "10.0.0.2", "10.0.0.3"})).affinity_epoch, epoch);
    EXPECT_EQ(apply(sticky(), {service("other", {external("192.0.2.9", 80)}, {"10.0.0.9"})}).affinity_epoch,
              epoch);
    model::Service longer = sticky();
    longer.affinity_timeout_s = 200;
    const lb::Service& changed = apply(longer);
    EXPECT_EQ(changed.affinity_epoch, epoch);
    EXPECT_EQ(changed.affinity_timeout_s, 200u);
}

TEST_F(AffinityEpochsTest, SwitchedOffAndOnItIsANewEpoch_AFF007) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    EXPECT_FALSE(apply(service("web", {external("192.0.2.8", 80)}, {"10.0.0.1"})).has_affinity());
    EXPECT_NE(apply(sticky()).affinity_epoch, epoch);
}

TEST_F(AffinityEpochsTest, SwitchedOffAndOnBetweenTwoRunsItIsANewEpoch_AFF007) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    EXPECT_NE(apply_all({sticky()}, {key("web")}).affinity_epoch, epoch);
}

// Service ids are reused eventually: entries of the former owner must not match.
TEST_F(AffinityEpochsTest, AServiceThatComesBackIsANewEpoch_AFF007) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    apply_all({});
    const lb::Service& back = apply(sticky());
    EXPECT_NE(back.affinity_epoch, epoch);
    EXPECT_NE(back.affinity_epoch, 0u);
}

TEST_F(AffinityEpochsTest, AnotherServiceUnderTheOldNameIsANewEpoch_GEN010) {
    model::Service first = sticky();
    first.uid = std::string("a");
    const uint32_t epoch = apply(first).affinity_epoch;
    model::Service unknown = sticky({"10.0.0.1"});
    EXPECT_EQ(apply(unknown).affinity_epoch, epoch) << "from a source that knows no uid";
    first = sticky();
    first.uid = std::string("a");
    EXPECT_EQ(apply(first).affinity_epoch, epoch);
    first.uid = std::string("b");
    EXPECT_NE(apply(first).affinity_epoch, epoch);
}

TEST_F(AffinityEpochsTest, ABackendThatComesBackIsInItsNextStay_AFF005) {
    const uint16_t first = stay_of(apply(sticky()), "10.0.0.1");
    const uint16_t other = stay_of(apply(sticky()), "10.0.0.2");
    apply(sticky({"10.0.0.2"}));
    const lb::Service& back = apply(sticky());
    EXPECT_NE(stay_of(back, "10.0.0.1"), first);
    EXPECT_EQ(stay_of(back, "10.0.0.2"), other) << "it was there all the while";
}

TEST_F(AffinityEpochsTest, WeightZeroEndsAStayToo_AFF005) {
    const uint16_t first = stay_of(apply(sticky()), "10.0.0.1");
    model::Service resting = sticky();
    resting.sets[0].endpoints[0].weight = 0;
    apply(resting);
    EXPECT_NE(stay_of(apply(sticky()), "10.0.0.1"), first);
}

TEST_F(AffinityEpochsTest, ABackendOfTwoSetsComesBackOnce_AFF005) {
    model::Service both = sticky();
    both.sets.push_back(both.sets[0]);
    both.sets[1].source = lb::SourceMode::Keep;
    apply(both);
    model::Service without = both;
    without.sets[0].endpoints.erase(without.sets[0].endpoints.begin());
    apply(without);
    const lb::Service& still = apply(both);
    EXPECT_EQ(still.sets[0].usable[0].stay, 0) << "the other set had it";
    without.sets[1].endpoints.erase(without.sets[1].endpoints.begin());
    apply(without);
    const lb::Service& back = apply(both);
    EXPECT_EQ(back.sets[0].usable[0].stay, 1);
    EXPECT_EQ(back.sets[1].usable[0].stay, 1);
}

// --- Ports of one Service that pin a client together ---

const model::ServiceKey kHttp{"default", "shop", "http", Protocol::Tcp};
const model::ServiceKey kDns{"default", "shop", "dns", Protocol::Udp};

// A port of Service "shop", which has the given number of ports.
model::Service united(const model::ServiceKey& key,
                      const std::vector<std::string>& endpoints = {"10.0.0.1", "10.0.0.2"},
                      L4Port endpoint_port = 8080) {
    model::Service port =
        service("shop", {external("192.0.2.9", key.protocol == Protocol::Tcp ? 80 : 53)}, endpoints);
    port.key = key;
    for (model::Endpoint& endpoint : port.sets[0].endpoints) {
        endpoint.port = endpoint_port;
    }
    port.affinity_timeout_s = 100;
    port.affinity_scope = lb::AffinityScope::Service;
    return port;
}

class AffinityGroupTest : public CompilerTest {
 protected:
    void apply(std::vector<model::Service> services, const std::vector<model::ServiceKey>& forgotten = {}) {
        run(std::move(services), forgotten);
    }
    const lb::Service& at(const model::ServiceKey& key) const {
        return *compiler_.compiled()->services.get(key)->service;
    }
    const lb::Backend& backend(const model::ServiceKey& key, const std::string& address) const {
        const auto& usable = at(key).sets.at(0).usable;
        const auto found = std::ranges::find(usable, ip(address), &lb::Backend::address);
        EXPECT_NE(found, usable.end()) << address;
        return *found;
    }
    EndpointId number(const model::ServiceKey& key, const std::string& address) const {
        return backend(key, address).endpoint;
    }
    uint16_t stay(const model::ServiceKey& key, const std::string& address) const {
        return backend(key, address).stay;
    }
    uint32_t epoch(const model::ServiceKey& key = kHttp) const { return at(key).affinity_epoch; }
    // All ports have the same owner, epoch, numbers and stays.
    void expect_united(const std::vector<std::string>& addresses) const {
        EXPECT_EQ(at(kHttp).affinity_owner, at(kDns).affinity_owner);
        EXPECT_EQ(epoch(kHttp), epoch(kDns));
        for (const std::string& address : addresses) {
            EXPECT_EQ(number(kHttp, address), number(kDns, address)) << address;
            EXPECT_EQ(stay(kHttp, address), stay(kDns, address)) << address;
        }
    }
};

TEST_F(AffinityGroupTest, PortsShareTheOwnerTheEpochAndTheNumbersOfAddresses_AFF002) {
    apply({united(kHttp), united(kDns, {"10.0.0.2", "10.0.0.1", "10.0.0.3"}, 5353)});
    expect_united({"10.0.0.1", "10.0.0.2"});
    EXPECT_NE(number(kHttp, "10.0.0.1"), number(kHttp, "10.0.0.2"));
    EXPECT_NE(number(kDns, "10.0.0.3"), number(kDns, "10.0.0.1"));
    EXPECT_NE(number(kDns, "10.0.0.3"), number(kDns, "10.0.0.2"));
    EXPECT_EQ(at(kHttp).affinity_scope(), lb::AffinityScope::Service);
    for (const model::ServiceKey& key : {kHttp, kDns}) {
        const lb::BackendSet& set = at(key).sets[0];
        for (uint32_t i = 0; i < set.usable.size(); ++i) {
            EXPECT_EQ(set.pinned_position(set.usable[i].id), i);
            EXPECT_EQ(set.positions.find(set.usable[i].endpoint), i);
        }
        EXPECT_EQ(set.pinned_position(BackendId{77}), lb::BackendPositions::kNone);
    }
}

TEST_F(AffinityGroupTest, ServicesAndPortsOfScopePortAreApart_AFF002) {
    model::Service other = united(kHttp);
    other.key.name = "other";
    other.frontends = {external("192.0.2.10", 80)};
    model::Service own = united(kDns);
    own.affinity_scope = lb::AffinityScope::Port;
    apply({united(kHttp), own, other});
    EXPECT_NE(at(kHttp).affinity_owner, at(other.key).affinity_owner);
    EXPECT_NE(epoch(kHttp), epoch(other.key));
    EXPECT_EQ(at(kDns).affinity_owner, lb::affinity_owner_of(at(kDns).id));
    EXPECT_EQ(at(kDns).affinity_scope(), lb::AffinityScope::Port);
    EXPECT_EQ(number(kDns, "10.0.0.2").value, backend(kDns, "10.0.0.2").id.value);
}

TEST_F(AffinityGroupTest, OneAddressWithSeveralPortsIsOneEndpoint_AFF002) {
    model::Service http = united(kHttp, {"10.0.0.1", "10.0.0.1", "10.0.0.2"});
    http.sets[0].endpoints[1].port = 8081;
    apply({http, united(kDns)});
    const lb::BackendSet& set = at(kHttp).sets[0];
    ASSERT_EQ(set.usable.size(), 3u);
    EXPECT_EQ(set.usable[0].endpoint, set.usable[1].endpoint);
    EXPECT_EQ(set.pinned_position(set.usable[1].id), 0u) << "entries lead to the first";
    EXPECT_EQ(set.pinned_position(set.usable[2].id), 2u);
    expect_united({"10.0.0.1", "10.0.0.2"});
    apply({united(kHttp), united(kDns)});
    expect_united({"10.0.0.1", "10.0.0.2"});
    EXPECT_EQ(stay(kHttp, "10.0.0.1"), 0) << "it was there all the while";
}

TEST_F(AffinityGroupTest, AnotherPortEndpointsAndTimeoutsChangeWithoutANewEpoch_AFF008_AFF011) {
    apply({united(kHttp)});
    const uint32_t before = epoch();
    const EndpointId first = number(kHttp, "10.0.0.1");
    apply({united(kHttp), united(kDns)});
    EXPECT_EQ(epoch(), before);
    expect_united({"10.0.0.1", "10.0.0.2"});
    apply({united(kHttp, {"10.0.0.1", "10.0.0.3"}), united(kDns)});
    EXPECT_EQ(epoch(), before);
    model::Service longer = united(kHttp);
    longer.affinity_timeout_s = 200;
    apply({longer, united(kDns)});
    EXPECT_EQ(epoch(), before);
    EXPECT_EQ(at(kHttp).affinity_timeout_s, 200u);
    EXPECT_EQ(number(kHttp, "10.0.0.1"), first);
    apply({united(kDns)});
    EXPECT_EQ(epoch(kDns), before) << "a port that goes takes nothing along";
    apply({united(kDns), united(kHttp)}, {kHttp});
    EXPECT_EQ(epoch(), before) << "nor one that was gone for a moment";
    expect_united({"10.0.0.1", "10.0.0.2"});
}

TEST_F(AffinityGroupTest, WhatEndsTheEntriesOfAllPorts_AFF007_GEN010) {
    struct Row {
        const char* name;
        std::vector<std::vector<model::Service>> runs;
        std::vector<model::ServiceKey> forgotten;  // before the last one
    };
    const std::vector<model::Service> both = {united(kHttp), united(kDns)};
    auto off = both, apart = both, again = both;
    for (size_t i = 0; i < 2; ++i) {
        off[i].affinity_timeout_s = 0;
        off[i].affinity_scope = lb::AffinityScope::Port;
        apart[i].affinity_scope = lb::AffinityScope::Port;
        again[i].uid = std::string("b");
    }
    auto former = both;
    for (model::Service& port : former) {
        port.uid = std::string("a");
    }
    for (const Row& row : {Row{"affinity off and on", {both, off, both}, {}},
                           Row{"scope port and back", {both, apart, both}, {}},
                           Row{"off and on between two runs", {both, both}, {kHttp, kDns}},
                           Row{"Service gone and back", {both, {}, both}, {}},
                           Row{"another Service of that name", {former, again}, {}}}) {
        apply({});
        apply(row.runs.front());
        const uint32_t before = epoch();
        for (size_t i = 1; i < row.runs.size(); ++i) {
            apply(row.runs[i], i + 1 == row.runs.size() ? row.forgotten : std::vector<model::ServiceKey>());
        }
        EXPECT_NE(epoch(), before) << row.name;
        expect_united({"10.0.0.1", "10.0.0.2"});
        const uint32_t after = epoch();
        apply(row.runs.back());
        EXPECT_EQ(epoch(), after) << row.name << ": the same again";
    }
}

TEST_F(AffinityGroupTest, SwitchedToScopePortAPortStartsEmpty_AFF007) {
    apply({united(kHttp), united(kDns)});
    const uint32_t before = epoch();
    model::Service http = united(kHttp), dns = united(kDns);
    http.affinity_scope = dns.affinity_scope = lb::AffinityScope::Port;
    apply({http, dns});
    EXPECT_EQ(at(kHttp).affinity_scope(), lb::AffinityScope::Port);
    EXPECT_NE(epoch(kHttp), before);
    EXPECT_NE(epoch(kHttp), epoch(kDns));
    EXPECT_EQ(number(kHttp, "10.0.0.2").value, backend(kHttp, "10.0.0.2").id.value);
}

TEST_F(AffinityGroupTest, AnEndpointThatComesBackIsInItsNextStayOnAllPorts_AFF005) {
    apply({united(kHttp), united(kDns)});
    const auto claim = std::pair(number(kHttp, "10.0.0.1"), stay(kHttp, "10.0.0.1"));
    const auto other = std::pair(number(kHttp, "10.0.0.2"), stay(kHttp, "10.0.0.2"));
    apply({united(kHttp, {"10.0.0.2"}), united(kDns, {"10.0.0.2"})});
    apply({united(kHttp), united(kDns)});
    expect_united({"10.0.0.1", "10.0.0.2"});
    EXPECT_NE(std::pair(number(kHttp, "10.0.0.1"), stay(kHttp, "10.0.0.1")), claim);
    EXPECT_EQ(std::pair(number(kHttp, "10.0.0.2"), stay(kHttp, "10.0.0.2")), other)
        << "it was there all the while";
}

TEST_F(AffinityGroupTest, AnAddressThatTakesOverANumberHasNoClaim_AFF005) {
    apply({united(kHttp), united(kDns)});
    const auto claim = std::pair(number(kHttp, "10.0.0.1"), stay(kHttp, "10.0.0.1"));
    apply({united(kHttp, {"10.0.0.2"}), united(kDns, {"10.0.0.2"})});
    apply({united(kHttp, {"10.0.0.2", "10.0.0.3"}), united(kDns, {"10.0.0.2", "10.0.0.3"})});
    ASSERT_EQ(number(kHttp, "10.0.0.3"), claim.first) << "numbers are used again, so that they stay few";
    EXPECT_NE(stay(kHttp, "10.0.0.3"), claim.second);
    expect_united({"10.0.0.2", "10.0.0.3"});
}

TEST_F(AffinityGroupTest, AStayLastsWhileSomePortHasTheEndpoint_AFF005) {
    apply({united(kHttp), united(kDns)});
    const auto claim = std::pair(number(kHttp, "10.0.0.1"), stay(kHttp, "10.0.0.1"));
    const auto now = [&](const model::ServiceKey& key) {
        return std::pair(number(key, "10.0.0.1"), stay(key, "10.0.0.1"));
    };
    apply({united(kHttp, {"10.0.0.2"}), united(kDns)});
    EXPECT_EQ(now(kDns), claim);
    apply({united(kHttp), united(kDns)});
    EXPECT_EQ(now(kHttp), claim);
    // In one run from one port to the other, in either order of the ports.
    apply({united(kHttp, {"10.0.0.2"}), united(kDns)});
    apply({united(kHttp), united(kDns, {"10.0.0.2"})});
    EXPECT_EQ(now(kHttp), claim);
    apply({united(kHttp, {"10.0.0.2"}), united(kDns)});
    EXPECT_EQ(now(kDns), claim);
}

// The former version of a refused port keeps its epoch and stays. Once accepted, the port shares the present
// entries.
TEST_F(AffinityGroupTest, ARefusedPortJoinsWhenItIsAccepted_AFF002) {
    apply({united(kHttp), united(kDns)});
    const uint32_t before = epoch();
    model::Service off_http = united(kHttp), off_dns = united(kDns);
    off_http.affinity_timeout_s = off_dns.affinity_timeout_s = 0;
    off_http.affinity_scope = off_dns.affinity_scope = lb::AffinityScope::Port;
    // The frontend belongs to another Service: the change is refused.
    const model::Service rival = service("a-rival", {external("192.0.2.77", 53)}, {"10.0.0.9"});
    model::Service udp_rival = rival;
    udp_rival.key = key("a-rival", Protocol::Udp);
    apply({united(kHttp), united(kDns), udp_rival});
    off_dns.frontends.push_back(external("192.0.2.77", 53));
    apply({off_http, off_dns, udp_rival});
    EXPECT_TRUE(compiler_.compiled()->refusals.get(kDns) != nullptr);
    EXPECT_EQ(epoch(kDns), before) << "its former version stays in force";
    model::Service still = united(kDns);
    still.frontends.push_back(external("192.0.2.77", 53));
    apply({united(kHttp), still, udp_rival});
    EXPECT_NE(epoch(kHttp), before);
    EXPECT_EQ(epoch(kDns), before);
    apply({united(kHttp), united(kDns), udp_rival});
    EXPECT_TRUE(compiler_.compiled()->refusals.get(kDns) == nullptr);
    expect_united({"10.0.0.1", "10.0.0.2"});
}

// Addresses come and go repeatedly; ports come, go, and change their scope. The shared values are always the
// same at all ports, an address keeps its number as long as a port has it, and no two addresses share a
// number.
TEST_F(AffinityGroupTest, NumbersFollowTheSimplestModelOverManyChanges) {
    std::mt19937 random(7);  // NOLINT: the same each time
    std::map<std::string, std::pair<uint32_t, uint16_t>> last;
    uint32_t last_epoch = 0;
    for (int run = 0; run < 400; ++run) {
        std::vector<model::Service> services;
        std::set<std::string> offered;
        for (const model::ServiceKey& key :
             {kHttp, kDns, model::ServiceKey{"default", "shop", "tls", Protocol::Tcp}}) {
            if (random() % 8 == 0) {
                continue;
            }
            std::vector<std::string> endpoints;
            for (int i = 1; i <= 6; ++i) {
                if (random() % 2 == 0) {
                    endpoints.push_back("10.0.0." + std::to_string(i + run / 40));
                }
            }
            offered.insert(endpoints.begin(), endpoints.end());
            services.push_back(united(key, endpoints));
            services.back().frontends = {external("192.0.2.9", static_cast<L4Port>(1'000 + services.size()))};
        }
        apply(services);
        std::map<std::string, std::pair<uint32_t, uint16_t>> now;
        std::map<uint32_t, std::string> taken;
        for (const model::Service& service : services) {
            for (const lb::Backend& one : at(service.key).sets[0].usable) {
                const auto named = std::pair(one.endpoint.value, one.stay);
                const std::string address = one.address.to_string();
                EXPECT_EQ(now.try_emplace(address, named).first->second, named);
                EXPECT_EQ(taken.try_emplace(one.endpoint.value, address).first->second, address);
                EXPECT_LT(one.endpoint.value, 12u) << "numbers are used again";
            }
        }
        const uint32_t now_epoch = services.empty() ? 0 : epoch(services.front().key);
        for (const auto& [address, named] : now) {
            if (now_epoch == last_epoch && last.contains(address)) {
                EXPECT_EQ(last.at(address), named) << address << " in run " << run;
            }
        }
        last = std::move(now);
        last_epoch = now_epoch;
    }
}

}  // namespace affinity_epochs_test
}  // namespace penstock::gateway
