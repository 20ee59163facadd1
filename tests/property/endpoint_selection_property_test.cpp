// SPDX-License-Identifier: Apache-2.0
// Endpoint selection, compared with a one-page model written from the requirement sheet that shares no code
// with the room, on random clusters. All properties that affect a new flow are compared: the selectable
// endpoints and their weights, the excluded endpoints and the step that excluded them, whether the client's
// address is kept, the family of the endpoints, and the action of an empty set. They are compared for clients
// outside and inside, at external IPs and at ClusterIPs of both families.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tests/support/prng.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace endpoint_selection_property_test {

using lb::EmptyAction;
using test::Prng;

constexpr int kInputs = 100'000;
constexpr const char* kNode = "edge-1";
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kRack = "example.com/rack";

// Few values, so that duplicates, ties and empty sets are common. Left: the text; right: its meaning. 0 is no
// address of the family; a negative number is an address to which nothing may be forwarded. The last two are
// the Service's own ClusterIP and external IP.
// clang-format off
const std::vector<std::pair<std::string, int>> kAddresses = {
    {"10.244.0.1", 1}, {"10.244.0.2", 2}, {"010.244.000.002", 2}, {"10.244.0.3", 3}, {"10.244.0.4", 4},
    {"127.0.0.1", -1}, {"169.254.1.1", -2}, {"224.0.0.5", -3}, {"240.0.0.1", -4}, {"0.0.0.0", -5},
    {"10.244.0.256", 0}, {"::ffff:10.244.0.1", 0}, {"fd00::1", 0}, {"", 0},
    {"10.96.0.1", -6}, {"203.0.113.7", -7},
};
const std::vector<std::pair<std::string, int>> kAddresses6 = {
    {"fd00:244::1", 1}, {"fd00:244::2", 2}, {"FD00:0244:0::2", 2}, {"fd00:244::3", 3}, {"fd00:244::4", 4},
    {"::1", -1}, {"fe80::1", -2}, {"ff02::5", -3}, {"::", -5}, {"fd00:244::g", 0}, {"10.244.0.1", 0}, {"2001:db8::7", -7},
};
// clang-format on
constexpr size_t kGoodAddresses = 5;
constexpr const char* kTranslate = "penstock.io/translate-family";

template <typename T>
T any_of(Prng& prng, const std::vector<T>& values) {
    return values[prng.below(values.size())];
}

std::optional<bool> any_condition(Prng& prng) {
    const uint64_t drawn = prng.below(3);
    return drawn == 0 ? std::nullopt : std::optional(drawn == 1);
}

std::map<std::string, std::string> any_labels(Prng& prng) {
    std::map<std::string, std::string> labels;
    if (!prng.one_in(3)) {
        labels[kZone] = any_of<std::string>(prng, {"a", "b"});
    }
    if (!prng.one_in(3)) {
        labels[kRack] = any_of<std::string>(prng, {"1", "2"});
    }
    if (!prng.one_in(3)) {
        labels["weight"] = any_of<std::string>(prng, {"0", "3", "x"});
    }
    return labels;
}

kube::Endpoint any_endpoint(Prng& prng, const std::vector<std::pair<std::string, int>>& addresses) {
    kube::Endpoint one;
    // One of the first kGoodAddresses of the list in three of four cases.
    one.address = addresses[prng.below(prng.one_in(4) ? addresses.size() : kGoodAddresses)].first;
    one.ready = any_condition(prng);
    one.serving = any_condition(prng);
    one.terminating = any_condition(prng);
    one.node_name = any_of<std::string>(prng, {kNode, "edge-2", "edge-2", "", "EDGE-1", "unknown"});
    one.zone = any_of<std::string>(prng, {"", "a", "b"});
    if (!prng.one_in(4)) {
        one.hints_for_zones = any_of<InternedTexts>(prng, {{"a"}, {"b"}, {"a", "b"}});
    }
    if (!prng.one_in(3)) {
        one.hints_for_nodes = any_of<InternedTexts>(prng, {{kNode}, {"edge-2"}, {"edge-2", kNode}});
    }
    return one;
}

void add_slice(Prng& prng, World& world) {
    kube::EndpointSlice& slice = world.slice("slice-" + std::to_string(prng.below(6)), "default/web", {});
    slice.address_type = any_of<std::string>(prng, {"IPv4", "IPv4", "IPv4", "IPv4", "IPv6", "IPv6", "FQDN"});
    slice.ports.clear();
    slice.topology.clear();
    for (uint64_t j = prng.one_in(20) ? 0 : prng.between(1, 3); j > 0; --j) {
        slice.ports.push_back(
            {.name = any_of<std::string>(prng, {"http", "http", "http", "http", "http", "http", "", "dns"}),
             .protocol = any_of<std::string>(prng, {"TCP", "TCP", "TCP", "TCP", "TCP", "TCP", "UDP", "tcp"}),
             .port = any_of<std::optional<int64_t>>(
                 prng, {8080, 8080, 8080, 8080, 8080, 9090, 9090, 9090, 0, std::nullopt, 65536, -1})});
    }
    for (uint64_t j = prng.below(8); j > 0; --j) {
        slice.endpoints.push_back(
            any_endpoint(prng, slice.address_type == "IPv6" ? kAddresses6 : kAddresses));
    }
    if (prng.one_in(4)) {
        for (size_t j = 0; j < slice.endpoints.size(); ++j) {
            slice.topology.push_back(any_of<InternedTexts>(prng, {{}, {kRack, "1"}, {kRack, "2"}}));
        }
    }
    slice.meta.annotations.clear();
    if (prng.one_in(4)) {
        slice.meta.annotations["penstock.io/weight"] = any_of<std::string>(prng, {"0", "2", "x"});
    }
}

World random_world(Prng& prng) {
    World world;
    world.gateway.node_name = prng.one_in(10) ? "" : kNode;
    if (prng.one_in(4)) {
        world.gateway = {
            .gateway_name = "gw", .mode = model::GatewayMode::External, .labels = any_labels(prng)};
    }
    world.policy.serve_cluster_ips = prng.one_in(2);
    world.policy.masquerade_all = prng.one_in(4);
    world.policy.symmetric_return = !prng.one_in(4);
    world.policy.topology_no_match_drops = prng.one_in(2);
    for (const char* name : {kNode, "edge-2", "EDGE-1"}) {
        world.objects.nodes.erase(name);
        if (!prng.one_in(5)) {
            kube::Node& node = world.objects.nodes[name];
            node.meta = {.name = name, .labels = any_labels(prng)};
            node.pod_cidrs = any_of<std::vector<std::string>>(prng, {{}, {"10.245.0.0/24"}});
        }
    }
    world.service("default/yard",
                  "10.96.0.1");  // makes it a ClusterIP, whatever families the other one has
    kube::Service& web = world.service("default/web", "10.96.0.1");
    web.ip_families =
        any_of<std::vector<std::string>>(prng, {{"IPv4"}, {"IPv4"}, {"IPv6"}, {"IPv6", "IPv4"}});
    web.cluster_ips.clear();
    for (const std::string& family : web.ip_families) {
        web.cluster_ips.push_back(family == "IPv4" ? "10.96.0.1" : "fd00:96::1");
    }
    web.cluster_ip = web.cluster_ips[0];
    web.external_ips = {"203.0.113.7", "2001:db8::7"};
    if (prng.one_in(2)) {
        web.meta.annotations[kTranslate] = any_of<std::string>(prng, {"true", "1", "false", "both"});
    }
    web.external_traffic_policy = any_of<std::string>(prng, {"Local", "Cluster"});
    web.internal_traffic_policy = any_of<std::string>(prng, {"Local", "Cluster"});
    web.ports = {{.name = "http", .port = 80}};
    if (prng.one_in(3)) {
        web.topology_keys = any_of<std::vector<std::string>>(
            prng,
            {{kRack}, {kZone}, {kRack, kZone}, {kZone, "*"}, {"*"}, {"absent", kRack, "*"}, {"*", kZone}});
    }
    if (prng.one_in(4)) {
        web.meta.annotations["penstock.io/backend-node-selector"] =
            any_of<std::string>(prng, {"example.com/rack=1", "topology.kubernetes.io/zone in (a)", "!weight",
                                       "example.com/rack notin (1)"});
    }
    if (prng.one_in(4)) {
        web.meta.annotations["penstock.io/node-weight-label"] = "weight";
    }
    if (prng.one_in(4)) {
        web.meta.annotations["penstock.io/no-endpoints-action"] = "drop";
    }
    for (uint64_t i = prng.below(7); i > 0; --i) {
        add_slice(prng, world);
    }
    return world;
}

// --- The model ---

using Place = std::pair<int, int64_t>;  // address, port

struct Known {
    int rank = 0;  // 0 ready, 1 serving and terminating, 2 other (EP-010)
    bool serving = false;
    int weight = 1;
    const kube::Endpoint* endpoint = nullptr;
    std::map<std::string, std::string> place;  // labels (TOPO-001)
};

// The fate of each endpoint after all steps: "" if it is selectable, otherwise the name of the step that
// excluded it.
struct View {
    std::map<Place, std::string> fate;
    bool kept = false;
    EmptyAction when_empty = EmptyAction::Reject;
    bool translates_family = false;  // ANN-32
    bool operator==(const View&) const = default;
};

class Model {
 public:
    explicit Model(const World& world) : world_(world), web_(world.objects.services.begin()->second) {
        merge(IpFamily::V4);
        merge(IpFamily::V6);
    }

    std::map<IpFamily, std::map<Place, Known>> by_family;

    [[nodiscard]] bool translates() const {
        const auto value = web_.meta.annotations.find(kTranslate);
        return value != web_.meta.annotations.end() && (value->second == "true" || value->second == "1");
    }
    [[nodiscard]] bool serves(IpFamily family) const {
        return translates() || std::ranges::count(web_.ip_families, to_string(family)) > 0;
    }

    // At an external IP or a ClusterIP of `family`, for a client outside or inside.
    [[nodiscard]] View view(bool external, bool inside, IpFamily family) const {
        const View own = view_of_own(external, inside, family);
        if (!translates() || usable(own, family)) {
            return own;
        }
        View other = view_of_own(external, inside, other_family(family));
        other.kept = false;
        other.translates_family = true;
        const EmptyAction nobody = nobody_anywhere();
        const bool tells_more = own.when_empty == nobody && other.when_empty != nobody;
        const bool knows_more = own.fate.empty() && !other.fate.empty();
        return usable(other, other_family(family)) || tells_more || knows_more ? other : own;
    }

    static int meaning(const kube::EndpointAddress& address, IpFamily family) {
        for (const auto& [known, number] : family == IpFamily::V4 ? kAddresses : kAddresses6) {
            if (kube::EndpointAddress(known) == address) {
                return number;
            }
        }
        return 0;
    }

 private:
    [[nodiscard]] EmptyAction nobody_anywhere() const {
        const bool drop = web_.meta.annotations.contains("penstock.io/no-endpoints-action");
        return drop ? EmptyAction::Drop : EmptyAction::Reject;  // REJ-001
    }
    [[nodiscard]] bool usable(const View& view, IpFamily family) const {
        return std::ranges::any_of(view.fate, [&](const auto& one) {
            return one.second.empty() && by_family.at(family).at(one.first).weight > 0;
        });
    }
    [[nodiscard]] View view_of_own(bool external, bool inside, IpFamily family) const {
        const std::map<Place, Known>& all = by_family.at(family);
        const bool node = world_.gateway.mode == model::GatewayMode::Node;
        bool local = (external ? web_.external_traffic_policy : web_.internal_traffic_policy) == "Local";
        View view;
        if (external) {
            view.kept = local && (node || world_.policy.symmetric_return);  // ETP-001, ETP-002, ETP-004
            if (inside && local && node) {                                  // ETP-006
                local = false;
                view.kept = pod_cidrs_known();
            }
        } else {
            view.kept = inside && pod_cidrs_known() && !world_.policy.masquerade_all;  // NAT-004
        }
        view.when_empty = nobody_anywhere();
        std::map<Place, std::string>& fate = view.fate;
        for (const auto& [place, one] : all) {
            fate[place] = place.first < 0 ? "forbidden" : selected(one) ? "" : "node selector";
        }
        const auto take_out = [&](const char* word, auto&& goes) {
            for (auto& [place, why] : fate) {
                why = why.empty() && goes(all.at(place)) ? word : why;
            }
        };
        const auto any = [&](auto&& holds) {
            return std::ranges::any_of(
                fate, [&](const auto& one) { return one.second.empty() && holds(all.at(one.first)); });
        };
        const auto weighs = [](const Known& one) { return one.weight > 0; };
        const auto is_ready = [](const Known& one) { return one.rank == 0; };
        take_out("not ready", [](const Known& one) { return one.rank == 2; });
        const bool any_ready_anywhere = any(is_ready);
        const bool any_anywhere =
            any([&](const Known& one) { return weighs(one) && (one.rank == 0 || !any_ready_anywhere); });
        if (local && node) {
            take_out("not local", [&](const Known& one) {
                return one.endpoint->node_name.empty() || one.endpoint->node_name != world_.gateway.node_name;
            });
        }
        const bool fallback = !any(is_ready);  // EP-012, EP-013
        if (!fallback) {
            take_out("terminating", [](const Known& one) { return one.rank == 1; });
        }
        if (local) {
            if (node && any_anywhere && !any(weighs)) {
                view.when_empty = EmptyAction::DropNoLocal;  // ETP-003, ETP-009
            }
            return view;  // TOPO-007, TOPO-010
        }
        const std::vector<std::string> keys = valid_keys();
        const auto here = origin();
        if (!keys.empty()) {
            std::optional<std::string> found;
            for (const std::string& key : keys) {  // TOPO-002, TOPO-003
                const auto agrees = [&](const Known& one) {
                    return one.place.contains(key) && one.place.at(key) == here.at(key);
                };
                if (!found && (key == "*" || (here.contains(key) && any(agrees)))) {
                    found = key;
                }
            }
            if (!found && any_anywhere && world_.policy.topology_no_match_drops) {
                view.when_empty = EmptyAction::Drop;  // TOPO-004
            }
            take_out("topology keys", [&](const Known& one) {
                return !found || (*found != "*" &&
                                  (!one.place.contains(*found) || one.place.at(*found) != here.at(*found)));
            });
        } else if (!fallback) {  // TOPO-008, TOPO-010
            const auto follow = [&](auto hints, const std::string& wanted) {
                const auto has = [&](const Known& one) {
                    return std::ranges::count((one.endpoint->*hints).value(), wanted) > 0;
                };
                if (wanted.empty() || any([&](const Known& one) { return (one.endpoint->*hints).empty(); }) ||
                    !any(has)) {
                    return false;
                }
                take_out("topology hints", [&](const Known& one) { return !has(one); });
                return true;
            };
            if (!follow(&kube::Endpoint::hints_for_nodes, node ? world_.gateway.node_name : "")) {
                follow(&kube::Endpoint::hints_for_zones, here.contains(kZone) ? here.at(kZone) : "");
            }
        }
        return view;
    }

    using Labels = std::map<std::string, std::string>;

    [[nodiscard]] const Labels* labels_of(const std::string& node) const {
        const auto found = world_.objects.nodes.find(node);
        return node.empty() || found == world_.objects.nodes.end() ? nullptr : &found->second.meta.labels;
    }
    [[nodiscard]] Labels origin() const {
        if (world_.gateway.mode == model::GatewayMode::External) {
            return world_.gateway.labels;
        }
        const Labels* labels = labels_of(world_.gateway.node_name);
        return labels == nullptr ? Labels() : *labels;
    }
    [[nodiscard]] bool pod_cidrs_known() const {
        return std::ranges::any_of(world_.objects.nodes,
                                   [](const auto& node) { return !node.second.pod_cidrs.empty(); });
    }
    [[nodiscard]] std::vector<std::string> valid_keys() const {
        const bool star_first = web_.topology_keys.size() > 1 && web_.topology_keys[0] == "*";  // TOPO-005
        return star_first ? std::vector<std::string>() : web_.topology_keys;
    }
    [[nodiscard]] bool selected(const Known& one) const {  // ANN-14
        const auto wanted = web_.meta.annotations.find("penstock.io/backend-node-selector");
        if (wanted == web_.meta.annotations.end()) {
            return true;
        }
        const Labels* labels = labels_of(one.endpoint->node_name.value());
        const auto is = [&](const char* key, const char* value) {
            return labels->contains(key) && labels->at(key) == value;
        };
        return labels != nullptr && (wanted->second == "example.com/rack=1"                   ? is(kRack, "1")
                                     : wanted->second == "topology.kubernetes.io/zone in (a)" ? is(kZone, "a")
                                     : wanted->second == "!weight" ? !labels->contains("weight")
                                                                   : !is(kRack, "1"));
    }
    void merge(IpFamily family) {
        std::map<Place, Known>& all = by_family[family];
        for (const auto& [name, slice] : world_.objects.slices) {  // in the order of names
            int64_t port = 0;
            for (const kube::EndpointPort& entry : slice.ports) {  // EP-003, EP-009
                const bool good = entry.name == "http" && entry.protocol == "TCP" && entry.port &&
                                  *entry.port > 0 && *entry.port < 65536;
                port = port == 0 && good ? *entry.port : port;
            }
            if (slice.address_type != to_string(family) || port == 0) {  // EP-008
                continue;
            }
            for (size_t i = 0; i < slice.endpoints.size(); ++i) {
                const kube::Endpoint& one = slice.endpoints[i];
                const bool leaving = one.serving != false && one.terminating == true;
                Known known{.rank = one.ready != false ? 0 : (leaving ? 1 : 2),
                            .serving = one.ready != false || one.serving != false};
                known.endpoint = &one;
                const Labels* labels = labels_of(one.node_name.value());
                if (labels != nullptr) {
                    known.place = *labels;
                } else {
                    if (!slice.topology.empty() && !slice.topology[i].empty()) {
                        known.place[kRack] = slice.topology[i].value()[1];
                    }
                    if (!one.zone.empty()) {
                        known.place[kZone] = one.zone.value();
                    }
                }
                const auto own = slice.meta.annotations.find("penstock.io/weight");  // EP-018, ANN-27
                if (own != slice.meta.annotations.end() && own->second != "x") {
                    known.weight = own->second == "0" ? 0 : 2;
                } else if (labels != nullptr &&
                           web_.meta.annotations.contains("penstock.io/node-weight-label") &&
                           labels->contains("weight")) {
                    known.weight = labels->at("weight") == "0" ? 0 : labels->at("weight") == "3" ? 3 : 1;
                }
                if (meaning(one.address, family) != 0) {  // EP-005
                    const auto [found, first] = all.try_emplace({meaning(one.address, family), port}, known);
                    if (!first && known.rank < found->second.rank) {  // EP-004
                        found->second = known;
                    }
                }
            }
        }
    }

    const World& world_;
    const kube::Service& web_;
};

// --- The comparison ---

View view_of(const model::BackendSet& set, const Model& model) {
    View view{.fate = {},
              .kept = set.source == lb::SourceMode::Keep,
              .when_empty = set.when_empty,
              .translates_family = set.translates_family};
    const IpFamily family = set.endpoint_family();
    const std::map<Place, Known>& all = model.by_family.at(family);
    for (const model::Endpoint& one : set.endpoints) {
        const Place place{Model::meaning(one.address.to_string(), family), one.port};
        EXPECT_TRUE(view.fate.emplace(place, "").second) << "an endpoint twice";
        EXPECT_EQ(one.node_name, all.at(place).endpoint->node_name.value());
        EXPECT_EQ(one.weight, all.at(place).weight);
    }
    for (const model::ExcludedEndpoint& one : set.excluded) {
        const Place place{Model::meaning(one.address.to_string(), family), one.port};
        EXPECT_TRUE(view.fate.emplace(place, word_for(one.why)).second) << "an endpoint twice";
        EXPECT_EQ(one.serving, all.at(place).serving);
    }
    return view;
}

TEST(
    EndpointSelection,
    AgreesWithAPageOfModel_EP003_EP004_EP005_EP006_EP009_EP010_EP011_EP012_EP013_EP018_EP020_ETP003_ETP006_ETP009_TOPO002_TOPO008_ANN32) {
    Prng prng;
    std::map<std::string, size_t> seen;
    for (int i = 0; i < kInputs && !::testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE("input " + std::to_string(i));
        const World world = random_world(prng);
        const Outcome outcome = world.evaluate();
        const model::Service* web = find(outcome, "default/web:http/TCP");
        ASSERT_NE(web, nullptr);
        const Model model(world);
        const size_t cluster_ips =
            world.policy.serve_cluster_ips ? world.objects.services.begin()->second.cluster_ips.size() : 0;
        ASSERT_EQ(web->frontends.size(),
                  (model.serves(IpFamily::V4) ? 1 : 0) + (model.serves(IpFamily::V6) ? 1 : 0) + cluster_ips);
        ASSERT_LE(web->sets.size(), 8U);
        for (const model::Frontend& frontend : web->frontends) {
            const bool external = frontend.cls == lb::FrontendClass::ExternalIp;
            for (const bool inside : {false, true}) {
                const View found = view_of(
                    web->sets.at(inside ? frontend.inside_set.value_or(frontend.set) : frontend.set), model);
                const View expected = model.view(external, inside, frontend.family);
                ASSERT_EQ(found.fate, expected.fate)
                    << (external ? "external" : "internal") << (inside ? " inside" : " outside");
                ASSERT_EQ(found.kept, expected.kept);
                ASSERT_EQ(found.when_empty, expected.when_empty);
                ASSERT_EQ(found.translates_family, expected.translates_family);
                ASSERT_FALSE(found.kept && found.translates_family);
                for (const auto& [place, why] : found.fate) {
                    ++seen[why];
                }
                ++seen[found.when_empty == EmptyAction::DropNoLocal ? "drop" : "other"];
                ++seen[found.translates_family ? "translated family" : "own family"];
            }
        }
        // All endpoints that may keep flows are known, whichever frontends lead to them (UDP-001, DRAIN-003).
        size_t known = 0;
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            known += model.serves(family) ? model.by_family.at(family).size() : 0;
        }
        std::set<std::pair<IpAddr, L4Port>> places;
        for (const model::BackendSet& set : web->sets) {
            for (const model::Endpoint& one : set.endpoints) {
                places.emplace(one.address, one.port);
            }
            for (const model::ExcludedEndpoint& one : set.excluded) {
                places.emplace(one.address, one.port);
            }
        }
        ASSERT_EQ(places.size(), known);
    }
    // The random inputs must reach every outcome.
    for (const char* why : {"", "forbidden", "node selector", "not ready", "terminating", "not local",
                            "topology keys", "topology hints", "drop", "translated family"}) {
        EXPECT_GT(seen[why], size_t{kInputs} / 100) << why;
    }
}

}  // namespace endpoint_selection_property_test
}  // namespace penstock::semantics::testing
