// SPDX-License-Identifier: Apache-2.0
// AddressPool and Namespace in both notations: as JSON of an API server, and as a manifest.
#include "control/kube/pool_schema.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "control/kube/decode.hpp"
#include "control/manifest/decode.hpp"

namespace penstock::kube {
namespace pool_schema_test {

IpAddr ip(const char* text) {
    return IpAddr::parse(text).value();
}
ipam::AddressRange range(const char* first, const char* last) {
    return {ip(first), ip(last)};
}
annotations::Selector selector(const char* text) {
    return annotations::Selector::parse(text).value();
}

// `spec` is JSON, which is YAML as well.
std::string pool_text(const std::string& spec) {
    return R"({"apiVersion":"penstock.io/v1alpha1","kind":"AddressPool","metadata":{"name":"office"},"spec":)" +
           spec + "}";
}

// The pool as both decoders read it; nullopt and `faults` if it is refused. The results must be equal.
struct Read {
    std::optional<AddressPool> pool;
    std::vector<std::string> faults;
};
Read read(const std::string& text) {
    Decoder decoder;
    Read result;
    auto json = decode_object(decoder, ObjectKind::AddressPool, text);
    EXPECT_TRUE(json) << text;
    if (json->object) {
        result.pool = *std::get<AddressPoolPtr>(*json->object);
    }
    result.faults = json->faults;

    const manifest::DecodedFile file = manifest::decode(text, "pools.yaml");
    std::vector<std::string> faults;
    for (const manifest::Problem& problem : file.problems) {
        if (problem.severity == manifest::Problem::Severity::Error) {
            EXPECT_EQ(problem.object, "AddressPool office");
            EXPECT_GE(problem.line, 1U);
            faults.push_back(problem.rule);
        }
    }
    EXPECT_EQ(faults, result.faults) << text;
    EXPECT_EQ(file.objects.size(), 1U) << text;
    EXPECT_EQ(file.objects.at(0).object.has_value(), result.pool.has_value()) << text;
    if (result.pool && file.objects.at(0).object) {
        EXPECT_EQ(std::get<AddressPool>(*file.objects[0].object), *result.pool) << text;
    }
    return result;
}
Read read_spec(const std::string& spec) {
    return read(pool_text(spec));
}

ipam::Pool small_pool() {
    return {.name = "office", .ranges = {range("192.0.2.0", "192.0.2.255")}};
}

TEST(PoolSchema, ReadsEveryField_LB007) {
    const Read found = read_spec(R"({
        "addresses": ["2001:db8::/120", "192.0.2.10-192.0.2.20", "192.0.2.0/29"],
        "autoAssign": false, "avoidBuggyIPs": true, "priority": 20,
        "namespaces": ["web", "shop", "web"],
        "namespaceSelector": {"matchLabels": {"team": "edge"}},
        "serviceSelector": {"matchLabels": {"tier": "public", "empty": ""},
                            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["b", "a"]},
                                                 {"key": "x.io/y", "operator": "NotIn", "values": ["", "c"]},
                                                 {"key": "canary", "operator": "DoesNotExist"},
                                                 {"key": "in", "operator": "Exists", "values": []}]},
        "enforce": true, "internal": true, "disabled": true, "reassign": true,
        "reservations": [{"address": "192.0.2.12", "namespace": "web", "name": "front"},
                         {"address": "2001:DB8::1", "namespace": "web", "name": "front"}]})");
    ASSERT_TRUE(found.pool) << testing::PrintToString(found.faults);
    EXPECT_EQ(
        found.pool->pool,
        (ipam::Pool{
            .name = "office",
            .ranges = {range("192.0.2.0", "192.0.2.7"), range("192.0.2.10", "192.0.2.20"),
                       range("2001:db8::", "2001:db8::ff")},
            .auto_assign = false,
            .avoid_buggy_ips = true,
            .priority = 20,
            .namespaces = {"shop", "web"},
            .namespace_selector = selector("team in (edge)"),
            .service_selector = selector("tier=public,empty=,zone in (a,b),x.io/y notin (,c),!canary,in"),
            .enforce = true,
            .internal = true,
            .disabled = true,
            .reassign = true,
            .reservations = {{ip("192.0.2.12"), {"web", "front"}}, {ip("2001:db8::1"), {"web", "front"}}}}));
}

TEST(PoolSchema, AbsentAndNullFieldsHaveTheirDefaults_GEN004) {
    EXPECT_EQ(read_spec(R"({"addresses":["192.0.2.0/24"]})").pool->pool, small_pool());
    EXPECT_EQ(
        read_spec(R"({"addresses":["192.0.2.0/24"],"autoAssign":null,"avoidBuggyIPs":null,"priority":null,
        "namespaces":null,"namespaceSelector":null,"serviceSelector":null,"enforce":null,"internal":null,
        "disabled":null,"reassign":null,"reservations":null})")
            .pool->pool,
        small_pool());
    EXPECT_FALSE(read_spec(R"({"addresses":["192.0.2.0/24"]})").pool->pool.is_pinned());
}

TEST(PoolSchema, AnEmptySelectorMatchesEverythingAndPinsThePool_LB007) {
    const auto found = read_spec(R"({"addresses":["192.0.2.0/24"],"namespaceSelector":{}})");
    ASSERT_TRUE(found.pool);
    EXPECT_TRUE(found.pool->pool.is_pinned());
    ASSERT_TRUE(found.pool->pool.namespace_selector);
    EXPECT_TRUE(found.pool->pool.namespace_selector->matches({}));
}

TEST(PoolSchema, UnknownFieldsAreIgnored_GEN002) {
    EXPECT_EQ(read_spec(R"({"addresses":["192.0.2.0/24"],"bgpAdvertisement":{"a":[1]}})").pool->pool,
              small_pool());
}

TEST(PoolSchema, KeepsTheIdentityAndNoLabelsOrAnnotations) {
    const Read found =
        read(R"({"apiVersion":"penstock.io/v1alpha1","kind":"AddressPool","metadata":{"name":"office",
        "uid":"u-1","generation":3,"resourceVersion":"77","labels":{"a":"b"},"annotations":{"penstock.io/x":"y"}},
        "spec":{"addresses":["192.0.2.0/24"]},"status":{"total":{"ipv4":256}}})");
    ASSERT_TRUE(found.pool);
    EXPECT_EQ(found.pool->meta.uid, "u-1");
    EXPECT_EQ(found.pool->generation, 3);
    EXPECT_EQ(found.pool->meta.namespace_name, "");
    EXPECT_TRUE(found.pool->meta.labels.empty());
    EXPECT_TRUE(found.pool->meta.annotations.empty());
}

TEST(PoolSchema, AFaultRefusesThePoolByField_LB015) {
    struct Case {
        const char* spec;
        std::vector<std::string> faults;
    };
    const std::string good = R"("addresses":["192.0.2.0/24"])";
    for (
        const Case& each : std::vector<Case>{
            {"null", {"spec is missing"}},
            {"7", {R"(spec is an integer (7), must be a mapping (GEN-003))"}},
            {"{}", {"spec.addresses must have at least one CIDR or range"}},
            {R"({"addresses":[]})", {"spec.addresses must have at least one CIDR or range"}},
            {R"({"addresses":"192.0.2.0/24"})",
             {R"(spec.addresses is a string ("192.0.2.0/24"), must be a list (GEN-003))"}},
            {R"({"addresses":[1,"192.0.2.9-192.0.2.1"]})",
             {"spec.addresses[0] is an integer (1), must be a string (GEN-003)",
              R"(spec.addresses[1] ("192.0.2.9-192.0.2.1"): the last address is below the first one)"}},
            {R"({"addresses":["192.0.2.0/24","198.51.100.0/24","192.0.2.7/32"]})",
             {R"(spec.addresses[2] overlaps spec.addresses[0])"}},
            {R"({"addresses":["192.0.2.0/24"],"autoAssign":"no"})",
             {R"(spec.autoAssign is a string ("no"), must be a boolean (GEN-003))"}},
            {R"({"addresses":["192.0.2.0/24"],"priority":-1})",
             {"spec.priority (-1): must be from 0 to 2147483647"}},
            {R"({"addresses":["192.0.2.0/24"],"priority":2147483648})",
             {"spec.priority (2147483648): must be from 0 to 2147483647"}},
            {R"({"addresses":["192.0.2.0/24"],"namespaces":["web","Shop"]})",
             {R"(spec.namespaces[1] ("Shop"): is not the name of a namespace)"}},
            {R"({"addresses":["192.0.2.0/24"],"enforce":true})",
             {"spec.enforce requires namespaces or namespaceSelector: it reserves the pool for them"}},
            {R"({"addresses":["192.0.2.0/24"],"namespaceSelector":[]})",
             {"spec.namespaceSelector is a list, must be a mapping (GEN-003)"}},
            {R"({"addresses":["192.0.2.0/24"],"namespaceSelector":{"matchLabels":{"-a":"b"}}})",
             {R"(spec.namespaceSelector.matchLabels ("-a"): is not a label key)"}},
            {R"({"addresses":["192.0.2.0/24"],"serviceSelector":{"matchLabels":{"a":"b,c=d"}}})",
             {R"(spec.serviceSelector.matchLabels ("b,c=d"): is not a label value)"}},
            {R"({"addresses":["192.0.2.0/24"],"serviceSelector":{"matchExpressions":[
                   {"key":"a","operator":"In"},{"key":"a","operator":"Exists","values":["b"]},
                   {"key":"a","operator":"Gt","values":["1"]},{"operator":"Exists"}]}})",
             {"spec.serviceSelector.matchExpressions[0].values must have at least one value for the operator "
              "In",
              "spec.serviceSelector.matchExpressions[1].values must be absent for the operator Exists",
              R"(spec.serviceSelector.matchExpressions[2].operator ("Gt"): must be In, NotIn, Exists or DoesNotExist)",
              R"(spec.serviceSelector.matchExpressions[3].key (""): is not a label key)"}},
            {R"({"addresses":["192.0.2.0/24"],"reservations":[{"address":"192.0.3.1","namespace":"a","name":"b"},
                   {"address":"192.0.2.1","name":"b"},{"address":"192.0.2.1","namespace":"a","name":"B"},
                   {"namespace":"a","name":"b"}]})",
             {R"(spec.reservations[0].address ("192.0.3.1"): is not one of the pool's addresses)",
              R"(spec.reservations[1].namespace (""): must be the namespace of a Service)",
              R"(spec.reservations[2].address ("192.0.2.1"): is reserved twice)",
              R"(spec.reservations[2].name ("B"): must be the name of a Service)",
              R"(spec.reservations[3].address (""): "" is not an IP address: a dotted quad has four parts)"}},
            {R"({"addresses":["192.0.2.0/24"],"avoidBuggyIPs":true,
                  "reservations":[{"address":"192.0.2.0","namespace":"a","name":"b"}]})",
             {R"(spec.reservations[0].address ("192.0.2.0"): ends in .0 or .255, which avoidBuggyIPs excludes)"}},
        }) {
        const Read found = read_spec(each.spec);
        EXPECT_FALSE(found.pool) << each.spec;
        EXPECT_EQ(found.faults, each.faults) << each.spec;
    }
}

TEST(PoolSchema, AFaultInAManifestHasItsLine_LB015) {
    const manifest::DecodedFile file = manifest::decode(
        "apiVersion: penstock.io/v1alpha1\n"
        "kind: AddressPool\n"
        "metadata: {name: office}\n"
        "spec:\n"
        "  addresses:\n"
        "  - 192.0.2.0/24\n"
        "  - 192.0.2.9-192.0.2.1\n"
        "  priority: -1\n"
        "  autoAsign: false\n",
        "pools.yaml");
    std::vector<std::string> problems;
    for (const manifest::Problem& problem : file.problems) {
        problems.push_back(problem.to_string());
    }
    EXPECT_EQ(problems,
              (std::vector<std::string>{
                  "pools.yaml:7: AddressPool office: spec.addresses[1] (\"192.0.2.9-192.0.2.1\"): the last "
                  "address is below the first one",
                  "pools.yaml:8: AddressPool office: spec.priority (-1): must be from 0 to 2147483647",
                  "pools.yaml:9: AddressPool office: unknown field spec.autoAsign is ignored; did you mean "
                  "autoAssign?"}));
}

TEST(PoolSchema, ListsHaveAMaximumLength) {
    const auto list = [](size_t count, const auto& item) {
        std::string text;
        for (size_t i = 0; i < count; ++i) {
            text += (i == 0 ? "[" : ",") + item(i);
        }
        return text + "]";
    };
    const auto spec = [&](size_t addresses, size_t namespaces, size_t reservations, size_t labels) {
        const auto number = [](size_t i) { return std::to_string(i / 256) + "." + std::to_string(i % 256); };
        return R"({"addresses":)" +
               list(addresses, [&](size_t i) { return "\"10.1." + number(i) + "/32\""; }) +
               R"(,"namespaces":)" +
               list(namespaces, [](size_t i) { return "\"n" + std::to_string(i) + "\""; }) +
               R"(,"serviceSelector":{"matchExpressions":)" +
               list(labels,
                    [](size_t i) { return R"({"operator":"Exists","key":"k)" + std::to_string(i) + "\"}"; }) +
               R"(},"reservations":)" +
               list(reservations,
                    [&](size_t i) {
                        return R"({"namespace":"a","name":"b","address":"10.1.)" + number(i) + "\"}";
                    }) +
               "}";
    };
    EXPECT_TRUE(read_spec(spec(kPoolAddressesMax, kPoolNamespacesMax, 1, 64)).pool);
    EXPECT_EQ(read_spec(spec(kPoolAddressesMax + 1, 1, 1, 1)).faults,
              std::vector<std::string>{"spec.addresses has 257 entries, at most 256 are possible"});
    EXPECT_EQ(read_spec(spec(1, kPoolNamespacesMax + 1, 1, 1)).faults,
              std::vector<std::string>{"spec.namespaces has 257 entries, at most 256 are possible"});
    EXPECT_EQ(read_spec(spec(1, 1, 1, 65)).faults,
              std::vector<std::string>{"spec.serviceSelector has more than 64 requirements"});
    const auto reservations = [&](size_t count) {
        return R"({"addresses":["10.1.0.0/16"],"reservations":)" +
               list(count,
                    [](size_t i) {
                        return R"({"namespace":"a","name":"b","address":"10.1.)" + std::to_string(i / 256) +
                               "." + std::to_string(i % 256) + "\"}";
                    }) +
               "}";
    };
    EXPECT_TRUE(read_spec(reservations(kPoolReservationsMax)).pool);
    EXPECT_EQ(read_spec(reservations(kPoolReservationsMax + 1)).faults,
              std::vector<std::string>{"spec.reservations has 1025 entries, at most 1024 are possible"});
}

// The schema of the CRD, as far as this test reads it.
class Crd {
 public:
    Crd() {
        std::ifstream file(PENSTOCK_POOL_CRD);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        tree_ = manifest::parse_tree(text, 1);
        spec_ = at({"spec", "versions", "0", "schema", "openAPIV3Schema", "properties", "spec"});
    }
    [[nodiscard]] const manifest::Value* spec() const { return spec_; }
    // The value at this path below `spec`; null if there is none.
    [[nodiscard]] const manifest::Value* property(std::initializer_list<const char*> path) const {
        return find(spec_, path);
    }

 private:
    static const manifest::Value* find(const manifest::Value* value,
                                       std::initializer_list<const char*> path) {
        for (const char* key : path) {
            if (value != nullptr && value->kind == ValueKind::List) {
                value = value->items.empty() ? nullptr : value->items[0].get();
            } else if (value != nullptr) {
                value = value->find(key);
            }
        }
        return value;
    }
    [[nodiscard]] const manifest::Value* at(std::initializer_list<const char*> path) const {
        return find(tree_.root.get(), path);
    }

    manifest::Tree tree_;
    const manifest::Value* spec_ = nullptr;
};

TEST(PoolSchema, TheCrdHasTheSameFieldsDefaultsAndLimits_GEN004) {
    const Crd crd;
    ASSERT_NE(crd.spec(), nullptr) << PENSTOCK_POOL_CRD;
    const auto limit = [&](std::initializer_list<const char*> path) {
        const manifest::Value* value = crd.property(path);
        return value == nullptr ? -1 : value->integer;
    };
    EXPECT_EQ(limit({"properties", "addresses", "maxItems"}), kPoolAddressesMax);
    EXPECT_EQ(limit({"properties", "namespaces", "maxItems"}), kPoolNamespacesMax);
    EXPECT_EQ(limit({"properties", "reservations", "maxItems"}), kPoolReservationsMax);
    for (const char* selector : {"namespaceSelector", "serviceSelector"}) {
        EXPECT_EQ(limit({"properties", selector, "properties", "matchExpressions", "maxItems"}),
                  annotations::Selector::kPartsMax);
    }
    // A pool with every field of the CRD, each at its default or empty, has no unknown field, and is the pool
    // with addresses alone.
    std::string spec;
    for (const auto& [name, property] : crd.property({"properties"})->fields) {
        const manifest::Value* value = property->find("default");
        const std::string type = property->find("type")->text;
        if (name == "addresses") {
            spec += name + R"(: ["192.0.2.0/24"], )";
        } else if (type == "array") {
            spec += name + ": [], ";
        } else if (value != nullptr) {
            spec += name + ": " +
                    (value->kind == ValueKind::Boolean ? (value->boolean ? "true" : "false")
                                                       : std::to_string(value->integer)) +
                    ", ";
        } else {
            EXPECT_TRUE(name.ends_with("Selector")) << name << " has no default";
        }
    }
    const manifest::DecodedFile file = manifest::decode(
        "apiVersion: penstock.io/v1alpha1\nkind: AddressPool\nmetadata: {name: office}\nspec: {" + spec +
            "}\n",
        "f");
    EXPECT_TRUE(file.problems.empty()) << file.problems[0].to_string();
    ASSERT_TRUE(file.objects.size() == 1 && file.objects[0].object) << spec;
    EXPECT_EQ(std::get<AddressPool>(*file.objects[0].object).pool, small_pool());
    EXPECT_EQ(crd.property({"properties"})->fields.size(), 12U) << "the fields of ReadsEveryField";
}

TEST(PoolSchema, ANamespaceKeepsOnlyItsLabels) {
    const std::string text = R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web","uid":"u",
        "labels":{"team":"edge"},"annotations":{"penstock.io/a":"b"}},"spec":{"finalizers":["kubernetes"]}})";
    Namespace expected;
    expected.meta.name = "web";
    expected.meta.labels = {{"kubernetes.io/metadata.name", "web"}, {"team", "edge"}};
    Decoder decoder;
    const auto json = decode_object(decoder, ObjectKind::Namespace, text);
    ASSERT_TRUE(json && json->object);
    EXPECT_EQ(*std::get<NamespacePtr>(*json->object), expected);
    const manifest::DecodedFile file = manifest::decode(text, "n.yaml");
    ASSERT_EQ(file.objects.size(), 1U);
    EXPECT_EQ(std::get<Namespace>(*file.objects[0].object), expected);
    EXPECT_TRUE(file.problems.empty());
}

}  // namespace pool_schema_test
}  // namespace penstock::kube
