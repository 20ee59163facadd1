// Endpoint selection against a model of a page: random slices, hand-read rules, no code in common with the room.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tests/support/prng.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace {

using test::Prng;

constexpr int kInputs = 10'000;
constexpr const char* kNode = "edge-1";

// Few of everything, so that duplicates, ties and empty sets are common. Text on the left, what it means on the right; -1: not usable. The
// last two usable-looking ones are the Service's own ClusterIP and external IP.
// clang-format off
const std::vector<std::pair<std::string, int>> kAddresses = {
    {"10.244.0.1", 1}, {"10.244.0.2", 2}, {"010.244.000.002", 2}, {"10.244.0.3", 3}, {"10.244.0.4", 4},
    {"127.0.0.1", -1}, {"169.254.1.1", -1}, {"224.0.0.5", -1}, {"240.0.0.1", -1}, {"0.0.0.0", -1},
    {"10.244.0.256", -1}, {"::ffff:10.244.0.1", -1}, {"fd00::1", -1}, {"", -1},
    {"10.96.0.1", -1}, {"203.0.113.7", -1},
};
// clang-format on
constexpr size_t kGoodAddresses = 5;

template <typename T>
const T& any_of(Prng& prng, const std::vector<T>& values) {
    return values[prng.below(values.size())];
}

std::optional<bool> any_condition(Prng& prng) {
    const uint64_t drawn = prng.below(3);
    return drawn == 0 ? std::nullopt : std::optional(drawn == 1);
}

World random_world(Prng& prng) {
    World world;
    world.gateway.node_name = prng.one_in(10) ? "" : kNode;
    world.gateway.mode = prng.one_in(4) ? model::GatewayMode::External : model::GatewayMode::Node;
    kube::Service& web = world.service("default/web", "10.96.0.1");
    web.external_ips = {"203.0.113.7"};
    web.external_traffic_policy = prng.one_in(2) ? "Local" : "Cluster";
    web.ports = {{.name = "http", .port = 80}};
    for (uint64_t i = prng.below(7); i > 0; --i) {
        kube::EndpointSlice& slice = world.slice("slice-" + std::to_string(prng.below(6)), "default/web", {});
        slice.address_type = any_of<std::string>(prng, {"IPv4", "IPv4", "IPv4", "IPv4", "IPv6", "FQDN"});
        slice.ports.clear();
        for (uint64_t j = prng.one_in(20) ? 0 : prng.between(1, 3); j > 0; --j) {
            slice.ports.push_back({.name = any_of<std::string>(prng, {"http", "http", "http", "http", "http", "http", "", "dns"}),
                                   .protocol = any_of<std::string>(prng, {"TCP", "TCP", "TCP", "TCP", "TCP", "TCP", "UDP", "tcp"}),
                                   .port = any_of<std::optional<int64_t>>(
                                       prng, {8080, 8080, 8080, 8080, 8080, 9090, 9090, 9090, 0, std::nullopt, 65536, -1})});
        }
        for (uint64_t j = prng.below(8); j > 0; --j) {
            kube::Endpoint one;
            // The first kGoodAddresses of the list three times out of four.
            const size_t among = prng.one_in(4) ? kAddresses.size() : kGoodAddresses;
            one.address = kAddresses[prng.below(among)].first;
            one.ready = any_condition(prng);
            one.serving = any_condition(prng);
            one.terminating = any_condition(prng);
            one.node_name = any_of<std::string>(prng, {kNode, "edge-2", "", "EDGE-1"});
            slice.endpoints.push_back(one);
        }
    }
    return world;
}

// The rules as the sheet words them, one map and no cleverness.
struct Model {
    struct Entry {
        int rank = 0;  // 0 ready, 1 serving and terminating, 2 other
        std::string node;
    };
    std::map<std::pair<int, int64_t>, Entry> merged;  // by (address, port)
    std::set<std::pair<int, int64_t>> chosen;
    bool drop_no_local = false;

    static int meaning(const kube::EndpointAddress& address) {
        for (const auto& [known, number] : kAddresses) {
            if (kube::EndpointAddress(known) == address) {
                return number;
            }
        }
        return -1;
    }

    explicit Model(const World& world) {
        for (const auto& [name, slice] : world.objects.slices) {  // in the order of names
            if (slice.address_type != "IPv4") {
                continue;  // EP-008; the Service is IPv4
            }
            int64_t port = 0;
            for (const kube::EndpointPort& entry : slice.ports) {  // EP-003, EP-009
                const bool good = entry.name == "http" && entry.protocol == "TCP" && entry.port && *entry.port > 0 && *entry.port < 65536;
                port = port == 0 && good ? *entry.port : port;
            }
            if (port == 0) {
                continue;
            }
            for (const kube::Endpoint& one : slice.endpoints) {
                const int address = meaning(one.address);  // EP-005
                if (address < 0) {
                    continue;  // EP-005, EP-006
                }
                const bool ready = one.ready != false;  // EP-010: null is true
                const bool leaving = one.serving != false && one.terminating == true;
                const Entry entry{.rank = ready ? 0 : (leaving ? 1 : 2), .node = one.node_name.value()};
                const auto [found, first] = merged.try_emplace({address, port}, entry);
                if (!first && entry.rank < found->second.rank) {  // EP-004
                    found->second = entry;
                }
            }
        }
        const auto best = [&](const std::string* node) {  // EP-011..013
            std::set<std::pair<int, int64_t>> of_rank[3];
            for (const auto& [key, entry] : merged) {
                if (node == nullptr || (!entry.node.empty() && entry.node == *node)) {
                    of_rank[entry.rank].insert(key);
                }
            }
            return of_rank[0].empty() ? of_rank[1] : of_rank[0];
        };
        const bool local = world.objects.services.begin()->second.external_traffic_policy == "Local";
        if (local && world.gateway.mode == model::GatewayMode::Node) {
            chosen = best(&world.gateway.node_name);
            drop_no_local = chosen.empty() && !best(nullptr).empty();  // ETP-003
        } else {
            chosen = best(nullptr);  // ETP-001, ETP-004
        }
    }
};

TEST(EndpointSelection, AgreesWithAPageOfModel_EP003_EP004_EP005_EP006_EP009_EP010_EP011_EP012_EP013_ETP003) {
    Prng prng;
    size_t chosen_in_all = 0;
    size_t dropped_in_all = 0;
    for (int i = 0; i < kInputs; ++i) {
        const World world = random_world(prng);
        const Outcome outcome = world.evaluate();
        const model::Service* web = find(outcome, "default/web:http/TCP");
        ASSERT_NE(web, nullptr);
        const Model model(world);
        std::set<std::pair<int, int64_t>> found;
        for (const model::Endpoint& one : web->sets.at(0).endpoints) {
            const auto key = std::pair<int, int64_t>(Model::meaning(one.address.to_string()), one.port);
            ASSERT_TRUE(found.insert(key).second) << "input " << i << ": an endpoint twice";
            ASSERT_EQ(one.node_name, model.merged.at(key).node) << "input " << i;
        }
        ASSERT_EQ(found, model.chosen) << "input " << i;
        ASSERT_EQ(web->sets[0].when_empty, model.drop_no_local ? lb::EmptyAction::DropNoLocal : lb::EmptyAction::Reject) << "input " << i;
        chosen_in_all += found.size();
        dropped_in_all += model.drop_no_local ? 1U : 0U;
    }
    // The inputs are worth the time only if they reach both ends.
    EXPECT_GT(chosen_in_all, size_t{kInputs} / 2);
    EXPECT_GT(dropped_in_all, size_t{kInputs} / 100);
}

}  // namespace
}  // namespace penstock::semantics::testing
