// SPDX-License-Identifier: Apache-2.0
// Conflicts: each frontend tuple has one owner.
#include "control/semantics/conflicts.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace conflicts_test {

// Two Services that claim 203.0.113.7:80/TCP, each with its own class and creation time. `winner` is the
// owner by SVC-018. Each row is also run with the names swapped, so that neither name nor insertion order
// decides unless the row requires it.
struct ConflictRow {
    const char* name;
    char class_a;  // 'L' or 'X'
    const char* created_a;
    char class_b;
    const char* created_b;
    char winner;  // 'a', 'b', or 'n': the smaller namespace/name
};

class Conflicts : public ::testing::TestWithParam<ConflictRow> {};

void claim(kube::Service& service, char cls, const char* created) {
    service.meta.creation_timestamp = created;
    if (cls == 'L') {
        service.type = "LoadBalancer";
        service.ingress = {{.ip = "203.0.113.7"}};
    } else {
        service.external_ips = {"203.0.113.7"};
    }
    service.external_ips.push_back(
        service.meta.name == "one" ? "203.0.113.101" : "203.0.113.102");  // not claimed by another Service
}

TEST_P(Conflicts, OneWinsAndTheOtherIsTold_SVC018) {
    const ConflictRow& row = GetParam();
    for (const bool swapped : {false, true}) {
        World world;
        kube::Service& a = world.service(swapped ? "default/two" : "default/one");
        kube::Service& b = world.service(swapped ? "default/one" : "default/two");
        claim(a, row.class_a, row.created_a);
        claim(b, row.class_b, row.created_b);
        const bool a_wins = row.winner == 'a' || (row.winner == 'n' && !swapped);
        const kube::Service& winner = a_wins ? a : b;
        const kube::Service& loser = a_wins ? b : a;
        const Outcome outcome = world.evaluate();
        const char winning_class = a_wins ? row.class_a : row.class_b;
        Lines expected = {"default/" + winner.meta.name + "/TCP " + winning_class + " 203.0.113.7 80",
                          "default/one/TCP X 203.0.113.101 80", "default/two/TCP X 203.0.113.102 80"};
        Lines found = frontends(outcome);
        std::ranges::sort(expected);
        std::ranges::sort(found);
        EXPECT_EQ(found, expected) << (swapped ? "swapped" : "as written");
        EXPECT_EQ(reasons(outcome), Lines{"Service default/" + loser.meta.name + " FrontendConflict"});
        const std::string text = message(outcome, "FrontendConflict");
        EXPECT_NE(text.find("203.0.113.7:80/TCP belongs to default/" + winner.meta.name), std::string::npos)
            << text;

        // The loser becomes the owner as soon as the owner is gone.
        world.objects.services.erase(object_name("default/" + winner.meta.name));
        EXPECT_EQ(frontends(world.evaluate()).size(), 2U);
        EXPECT_EQ(reasons(world.evaluate()), Lines{});
    }
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, Conflicts,
    ::testing::Values(
        ConflictRow{"LoadBalancerBeforeOlderExternal", 'X', "2020-01-01T00:00:00Z", 'L',
                    "2024-01-01T00:00:00Z", 'b'},
        ConflictRow{"LoadBalancerBeforeYoungerExternal", 'X', "2024-01-01T00:00:00Z", 'L',
                    "2020-01-01T00:00:00Z", 'b'},
        ConflictRow{"OlderExternal", 'X', "2024-01-01T00:00:01Z", 'X', "2024-01-01T00:00:00Z", 'b'},
        ConflictRow{"OlderLoadBalancer", 'L', "2024-01-01T00:00:00Z", 'L', "2024-01-01T00:00:01Z", 'a'},
        ConflictRow{"EqualTimes", 'X', "2024-01-01T00:00:00Z", 'X', "2024-01-01T00:00:00Z", 'n'},
        ConflictRow{"NoTimes", 'X', "", 'X', "", 'n'},
        ConflictRow{"KnownBeforeUnknown", 'X', "", 'X', "2037-01-01T00:00:00Z", 'b'},
        ConflictRow{"UnreadableIsUnknown", 'X', "yesterday", 'X', "", 'n'},
        ConflictRow{"OffsetsAreCounted", 'X', "2024-01-01T01:30:00+02:00", 'X', "2024-01-01T00:00:00Z", 'a'},
        ConflictRow{"FractionsAreCounted", 'X', "2024-01-01T00:00:00.5Z", 'X', "2024-01-01T00:00:00Z", 'b'}),
    [](const auto& row) { return row.param.name; });

TEST(Conflicts, NamespaceComparesFirst_SVC018) {
    World world;
    world.service("b/a").external_ips = {"203.0.113.7"};
    world.service("a/b").external_ips = {"203.0.113.7"};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"a/b/TCP X 203.0.113.7 80"});
}

TEST(Conflicts, OnlyTheEqualTupleIsLost_SVC018_XIP007) {
    World world;
    kube::Service& first = world.service("default/a");
    first.external_ips = {"203.0.113.7"};
    kube::Service& second = world.service("default/b");
    second.external_ips = {"203.0.113.7"};
    second.ports = {{.name = "http", .port = 80},
                    {.name = "https", .port = 443},
                    {.name = "quic", .protocol = "UDP", .port = 80}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/a/TCP X 203.0.113.7 80", "default/b:https/TCP X 203.0.113.7 443",
                     "default/b:quic/UDP X 203.0.113.7 80"}));
    // The port that lost gets a notice; its sibling ports get none.
    EXPECT_EQ(find(outcome, "default/b:http/TCP")->notices.size(), 1U);
    EXPECT_EQ(find(outcome, "default/b:https/TCP")->notices.size(), 0U);
}

TEST(Conflicts, ClusterIpComesFirst_SVC018) {
    World world;
    kube::Service& db = world.service("default/db", "198.51.100.7");
    db.meta.creation_timestamp = "2024-06-01T00:00:00Z";
    kube::Service& web = world.service("default/web");
    web.meta.creation_timestamp = "2024-01-01T00:00:00Z";
    web.type = "LoadBalancer";
    web.ingress = {{.ip = "198.51.100.7"}};
    web.ports = {{.name = "http", .port = 80}, {.name = "https", .port = 443}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/web:https/TCP L 198.51.100.7 443"});
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web FrontendConflict"});
    EXPECT_NE(message(outcome, "FrontendConflict").find("default/db (ClusterIP)"), std::string::npos);
}

TEST(Conflicts, OwnClusterIpIsNoRival_SVC019) {
    World world;
    kube::Service& web = world.service("default/web", "198.51.100.7");
    web.type = "LoadBalancer";
    web.ingress = {{.ip = "198.51.100.7"}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP L 198.51.100.7 80"});
    EXPECT_EQ(reasons(outcome), Lines{});
}

TEST(Conflicts, RefusedClaimOwnsNothing_XIP006_SVC018) {
    World world;
    world.policy.protected_addresses = {ip("203.0.113.9")};
    kube::Service& older = world.service("default/a");
    older.external_ips = {"198.51.100.1"};  // outside --allowed-external-cidrs
    older.meta.creation_timestamp = "2020-01-01T00:00:00Z";
    kube::Service& web = world.service("default/b");
    web.type = "LoadBalancer";
    web.ingress = {{.ip = "198.51.100.1"}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/b/TCP L 198.51.100.1 80"});
    EXPECT_EQ(reasons(outcome), Lines{"Service default/a ExternalIPNotAllowed"});
}

TEST(CreationTimes, Rfc3339AndNothingElse_SVC018) {
    struct Row {
        const char* text;
        CreationTime expected;
    };
    const CreationTime unknown;
    const Row rows[] = {
        {"1970-01-01T00:00:00Z", {.unknown = false}},
        {"2024-02-29T12:34:56Z", {.unknown = false, .seconds = 1'709'210'096}},
        {"2024-02-29t12:34:56z", {.unknown = false, .seconds = 1'709'210'096}},
        {"2024-02-29T14:04:56+01:30", {.unknown = false, .seconds = 1'709'210'096}},
        {"2024-02-29T11:34:56-01:00", {.unknown = false, .seconds = 1'709'210'096}},
        {"1970-01-01T00:00:00.000000001Z", {.unknown = false, .nanoseconds = 1}},
        {"1970-01-01T00:00:00.1234567891234Z", {.unknown = false, .nanoseconds = 123'456'789}},
        {"1969-12-31T23:59:59Z", {.unknown = false, .seconds = -1}},
        {"2016-12-31T23:59:60Z", {.unknown = false, .seconds = 1'483'228'800}},
        {"", unknown},
        {"2024-02-30T00:00:00Z", unknown},
        {"2024-13-01T00:00:00Z", unknown},
        {"2024-01-01T24:00:00Z", unknown},
        {"2024-01-01T00:60:00Z", unknown},
        {"2024-01-01T00:00:00", unknown},
        {"2024-01-01T00:00:00.Z", unknown},
        {"2024-01-01T00:00:00Z ", unknown},
        {"2024-01-01 00:00:00Z", unknown},
        {"2024-1-1T00:00:00Z", unknown},
        {"2024-01-01T00:00:00+25:00", unknown},
        {"2024-01-01T00:00:00+0100", unknown},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(CreationTime::parse(row.text), row.expected) << row.text;
    }
    EXPECT_LT(CreationTime::parse("2999-12-31T23:59:59Z"), unknown);
}

TEST(FrontendTuples, ReadAsPeopleWriteThem) {
    EXPECT_EQ((FrontendTuple{.address = ip("203.0.113.7"), .port = 80}).to_string(), "203.0.113.7:80/TCP");
    EXPECT_EQ(
        (FrontendTuple{.address = ip("2001:db8::7"), .port = 53, .protocol = Protocol::Udp}).to_string(),
        "[2001:db8::7]:53/UDP");
    EXPECT_EQ(node_port_tuple(IpFamily::V6, 30080, Protocol::Sctp).to_string(), "IPv6 NodePort 30080/SCTP");
}

}  // namespace conflicts_test
}  // namespace penstock::semantics::testing
