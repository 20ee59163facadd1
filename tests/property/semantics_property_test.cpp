// SPDX-License-Identifier: Apache-2.0
// GEN-006: the result is a function of the objects, independent of their order of arrival and of the order of
// their lists. Every tuple has one owner, independent of the viewpoint.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/support/prng.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace semantics_property_test {

using test::Prng;

template <typename T>
const T& any_of(Prng& prng, const std::vector<T>& values) {
    return values[prng.below(values.size())];
}

template <typename T>
void shuffle(Prng& prng, std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
        std::swap(values[i - 1], values[prng.below(i)]);
    }
}

const std::vector<std::string> kAddresses = {
    "203.0.113.1", "203.0.113.2", "203.0.113.3", "2001:db8::1", "198.51.100.1", "127.0.0.1", "x"};

// Few names, addresses and numbers, so that most claims conflict.
World random_world(Prng& prng) {
    World world;
    world.gateway.mode = prng.one_in(3) ? model::GatewayMode::External : model::GatewayMode::Node;
    const uint64_t services = prng.between(1, 8);
    for (uint64_t i = 0; i < services; ++i) {
        const std::string name = any_of<std::string>(prng, {"a/", "b/"}) +
                                 any_of<std::string>(prng, {"one", "two", "three", "four"});
        kube::Service& service =
            world.service(name, any_of<std::string>(prng, {"", "", "", "None", "203.0.113.3"}));
        service.type =
            any_of<std::string>(prng, {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "?"});
        service.ip_families = any_of<std::vector<std::string>>(prng, {{"IPv4"}, {"IPv4", "IPv6"}, {}});
        service.meta.creation_timestamp = any_of<std::string>(
            prng, {"", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"});
        service.external_traffic_policy = any_of<std::string>(prng, {"Cluster", "Local", "?"});
        if (prng.one_in(3)) {
            service.meta.annotations["penstock.io/translate-family"] = "true";
        }
        service.external_ips.clear();
        service.ingress.clear();
        service.ports.clear();
        for (uint64_t j = prng.below(4); j > 0; --j) {
            service.external_ips.push_back(any_of(prng, kAddresses));
        }
        for (uint64_t j = prng.below(3); j > 0; --j) {
            service.ingress.push_back({.ip = any_of(prng, kAddresses)});
        }
        service.ports.push_back(
            {.name = "p", .port = 80, .node_port = any_of<int64_t>(prng, {0, 30080, 30081})});
        service.ports.push_back({.name = "q",
                                 .protocol = any_of<std::string>(prng, {"TCP", "UDP"}),
                                 .port = 81,
                                 .node_port = any_of<int64_t>(prng, {0, 30080, 30081})});
        for (uint64_t j = prng.below(3); j > 0; --j) {
            std::vector<kube::Endpoint> members;
            for (uint64_t k = prng.below(4); k > 0; --k) {
                members.push_back(endpoint(
                    any_of<std::string>(prng, {"10.244.0.1", "10.244.0.2", "203.0.113.1", "127.0.0.1"}),
                    any_of<std::string>(prng, {"edge-1", "edge-2", ""})));
                members.back().ready = !prng.one_in(3);
            }
            world.slice("s" + std::to_string(prng.below(9)), name, members).ports = {
                {.name = "p", .port = 8080}, {.name = "q", .port = 8081}};
        }
    }
    return world;
}

// The same objects, with each unordered list in another order. Ports keep their order: among equal entries
// the first is used.
World reordered(Prng& prng, const World& world) {
    World other = world;
    for (auto& [name, service] : other.objects.services) {
        shuffle(prng, service.external_ips);
        shuffle(prng, service.ingress);
        shuffle(prng, service.ip_families);
    }
    return other;
}

TEST(Evaluate, IsAFunctionOfTheObjects_GEN006) {
    Prng prng;
    for (int i = 0; i < 3'000; ++i) {
        const World world = random_world(prng);
        const Outcome outcome = world.evaluate();
        ASSERT_EQ(world.evaluate(), outcome) << "input " << i;
        ASSERT_EQ(reordered(prng, world).evaluate(), outcome) << "input " << i;
    }
}

TEST(Evaluate, SliceNamesMeanNothingWithoutDuplicates_EP002_GEN006) {
    Prng prng;
    for (int i = 0; i < 1'000; ++i) {
        World first;
        World second;
        std::vector<std::string> names;
        for (int j = 0; j < 6; ++j) {
            names.push_back("slice-" + std::to_string(j));
        }
        for (World* world : {&first, &second}) {
            world->service("default/web").external_ips = {"203.0.113.7"};
        }
        std::vector<std::string> other_names = names;
        shuffle(prng, other_names);
        for (size_t j = 0; j < names.size(); ++j) {
            std::vector<kube::Endpoint> members;
            for (uint64_t k = prng.below(5); k > 0; --k) {
                members.push_back(endpoint("10.244." + std::to_string(j) + "." + std::to_string(k),
                                           any_of<std::string>(prng, {"edge-1", "n"})));
            }
            first.slice(names[j], "default/web", members);
            second.slice(other_names[j], "default/web", members);
        }
        ASSERT_EQ(first.evaluate(), second.evaluate()) << "input " << i;
    }
}

TEST(Evaluate, EveryTupleHasOneOwnerAndNoEndpointIsAFrontend_SVC018_EP006) {
    Prng prng;
    size_t conflicts = 0;
    for (int i = 0; i < 3'000; ++i) {
        const World world = random_world(prng);
        const Outcome outcome = world.evaluate();
        std::map<std::tuple<bool, IpAddr, IpFamily, L4Port, Protocol>, model::ServiceKey> owners;
        std::vector<IpAddr> vips;
        for (const auto& [key, service] : outcome.desired.services) {
            ASSERT_FALSE(service.sets.empty());
            for (const model::Frontend& frontend : service.frontends) {
                const bool node_port = frontend.cls == lb::FrontendClass::NodePort;
                const auto tuple =
                    std::tuple(node_port, frontend.address, frontend.family, frontend.port, key.protocol);
                ASSERT_TRUE(owners.try_emplace(tuple, key).second)
                    << "input " << i << ": " << key.to_string();
                ASSERT_EQ(service.sets.at(frontend.set).family, frontend.family);
                if (!node_port) {
                    vips.push_back(frontend.address);
                }
            }
            ASSERT_TRUE(std::ranges::is_sorted(service.notices));
            for (const model::Notice& notice : service.notices) {
                conflicts += notice.reason == "FrontendConflict" ? 1U : 0U;
            }
        }
        for (const auto& [key, service] : outcome.desired.services) {
            for (const model::BackendSet& set : service.sets) {
                for (const model::Endpoint& one : set.endpoints) {
                    ASSERT_EQ(std::ranges::find(vips, one.address), vips.end())
                        << "input " << i << ": " << one.address.to_string();
                    ASSERT_EQ(one.address.family(), set.endpoint_family());
                }
            }
        }
    }
    EXPECT_GT(conflicts, 1'000U);
}

// If the owner of a tuple is withdrawn, the tuple goes to a service that was refused it, or to none; no other
// service loses a tuple (SVC-018).
TEST(Evaluate, WithdrawingAServiceTakesNothingFromOthers_SVC018) {
    Prng prng;
    for (int i = 0; i < 1'000; ++i) {
        World world = random_world(prng);
        const Lines before = frontends(world.evaluate());
        const auto gone = std::next(world.objects.services.begin(),
                                    static_cast<ptrdiff_t>(prng.below(world.objects.services.size())));
        const std::string prefix = gone->first.namespace_name + "/" + gone->first.name;
        world.objects.services.erase(gone);
        const Lines after = frontends(world.evaluate());
        for (const std::string& line : before) {
            const bool of_the_gone = line.starts_with(prefix + ":") || line.starts_with(prefix + "/");
            if (!of_the_gone) {
                ASSERT_NE(std::ranges::find(after, line), after.end()) << "input " << i << ": " << line;
            }
        }
    }
}

}  // namespace semantics_property_test
}  // namespace penstock::semantics::testing
