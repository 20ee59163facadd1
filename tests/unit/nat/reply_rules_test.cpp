// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/reply_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "dataplane/nat/reply_owner.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/reply_hashes.hpp"

namespace penstock::nat {
namespace reply_rules_test {

using packet::FlowKey;

const FlowKey kReply4{IpAddr::v4(10, 1, 2, 3), IpAddr::v4(192, 0, 2, 1), 9376, 0, Protocol::Tcp, {}};
const FlowKey kReply6{
    IpAddr::v6({0xfd, 1, 2, 3, 4, 5, 6, 7, 8}), IpAddr::v6({0xfd, 9}), 9376, 0, Protocol::Udp, {}};

// A worker's own ports according to a rule are those with replies that arrive at the worker, by the
// definition of the hash.
TEST(ReplyRule, OwnPortsAreThoseWhoseRepliesComeHome) {
    const struct {
        uint32_t entries, workers;
    } cases[] = {{64, 2}, {128, 3}, {512, 4}, {128, 64}, {4'096, 5}};
    for (const auto& c : cases) {
        const ReplyHash hash = test::hash_in_turn(c.entries, c.workers);
        const ReplyRule rule({0}, hash, c.workers);
        for (const FlowKey& reply : {kReply4, kReply6}) {
            for (const uint32_t block : {0u, 16u, 517u, 1'023u}) {
                uint64_t all = 0;
                for (uint8_t w = 0; w < c.workers; ++w) {
                    const uint64_t own = rule.own_ports({w}, reply).in_block(block);
                    ASSERT_EQ(all & own, 0u) << "a port of two workers";
                    all |= own;
                    for (uint32_t i = 0; i < kPortsPerBlock; ++i) {
                        FlowKey to_port = reply;
                        to_port.destination_port = static_cast<L4Port>(block * kPortsPerBlock + i);
                        const uint32_t entry = test::plain_rss(hash.key, to_port) % c.entries;
                        ASSERT_EQ(own >> i & 1, hash.worker_of[entry].value == w ? 1u : 0u)
                            << to_port.to_string();
                        ASSERT_EQ(rule.way_of(to_port).entry, entry) << to_port.to_string();
                        ASSERT_EQ(rule.worker_of(to_port), hash.worker_of[entry]) << to_port.to_string();
                    }
                }
                ASSERT_EQ(all, ~0ULL) << "a port of nobody";
            }
        }
    }
}

// The rule that applies is that of the egress; for any egress, that of the first NicPort with a rule. The
// blocks apply if there is no rule, or if the rule does not cover the reply.
TEST(ReplyRules, AnAddressHasTheRuleOfItsEgress) {
    const ReplyHash all = test::hash_in_turn(128, 4);
    ReplyHash tcp4_only = all;
    std::ranges::reverse(tcp4_only.key);
    tcp4_only.udp4 = tcp4_only.tcp6 = tcp4_only.udp6 = false;
    const PortReplyHash hashes[] = {{{3}, &all}, {{1}, &tcp4_only}};  // in no order
    const ReplyRules rules = std::move(*ReplyRules::create(hashes, 4));
    const struct {
        const char* name;
        NicPortId egress;
        IpFamily family;
        Protocol protocol;
        std::optional<uint8_t> port;  // NicPort of the rule; none: blocks
    } cases[] = {
        {"the egress's", {3}, IpFamily::V4, Protocol::Tcp, 3},
        {"the other's", {1}, IpFamily::V4, Protocol::Tcp, 1},
        {"not covered there", {1}, IpFamily::V4, Protocol::Udp, {}},
        {"nor in the other family", {1}, IpFamily::V6, Protocol::Tcp, {}},
        {"IPv6 over UDP", {3}, IpFamily::V6, Protocol::Udp, 3},
        {"no RSS can cover SCTP", {3}, IpFamily::V4, Protocol::Sctp, {}},
        {"a NicPort without a hash", {0}, IpFamily::V4, Protocol::Tcp, {}},
        {"any egress: the first that has one", {}, IpFamily::V4, Protocol::Tcp, 1},
        {"any egress, not covered by the first", {}, IpFamily::V6, Protocol::Tcp, {}},
    };
    const ReplyOwner owner{.workers = 4, .rules = &rules};
    for (const auto& c : cases) {
        const ReplyRule* rule = rules.of_replies(c.egress, c.family, c.protocol);
        ASSERT_EQ(rule != nullptr, c.port.has_value()) << c.name;
        if (rule != nullptr) {
            EXPECT_EQ(rule->port().value, *c.port) << c.name;
        }
        FlowKey reply = c.family == IpFamily::V4 ? kReply4 : kReply6;
        reply.protocol = c.protocol;
        for (uint32_t port = 1'024; port < 1'600; ++port) {
            reply.destination_port = static_cast<L4Port>(port);
            EXPECT_EQ(owner.of_snat_reply(c.egress, reply),
                      rule == nullptr ? owner.of_snat_port(reply.destination_port)
                                      : worker_of(rule->port().value == 3 ? all : tcp4_only, reply))
                << c.name << " " << port;
        }
    }
    EXPECT_EQ(rules.of_port({2}), nullptr);
    EXPECT_EQ(rules.of_port({}), nullptr);
    EXPECT_TRUE(ReplyRules().empty());
    EXPECT_EQ(ReplyRules().of_replies({}, IpFamily::V4, Protocol::Tcp), nullptr);
}

// Ports are alike if both assign the same packet to the same worker; an equal key alone is not sufficient.
TEST(ReplyRules, PortsAreAlikeByKeyAndTable) {
    const ReplyHash one = test::hash_in_turn(128, 4), same = one;
    ReplyHash other_table = one, other_key = one, larger = test::hash_in_turn(512, 4);
    std::swap(other_table.worker_of.front(), other_table.worker_of.back());
    other_key.key.front() ^= 1;
    const PortReplyHash hashes[] = {
        {{0}, &one}, {{1}, &same}, {{2}, &other_table}, {{3}, &other_key}, {{4}, &larger}};
    const ReplyRules rules = std::move(*ReplyRules::create(hashes, 4));
    const struct {
        uint8_t port;
        bool is_alike;
    } rows[] = {{1, true}, {2, false}, {3, false}, {4, false}};
    for (const auto& row : rows) {
        EXPECT_EQ(rules.of_port({0})->is_alike(*rules.of_port({row.port})), row.is_alike) << int{row.port};
        EXPECT_EQ(rules.of_port({row.port})->is_alike(*rules.of_port({0})), row.is_alike) << int{row.port};
    }
}

TEST(ReplyRules, RefusesAHashThatHasAnObstacle) {
    const ReplyHash good = test::hash_in_turn(128, 2), bad = test::hash_in_turn(100, 2);
    const PortReplyHash with_obstacle[] = {{{0}, &good}, {{1}, &bad}};
    const auto refused = ReplyRules::create(with_obstacle, 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what,
              "NicPort 1: its RSS cannot be used: its table has 100 entries, which is not a power of two up "
              "to 4096");
    const PortReplyHash twice[] = {{{0}, &good}, {{0}, &good}};
    EXPECT_FALSE(ReplyRules::create(twice, 2));
    const PortReplyHash nowhere[] = {{{}, &good}};
    EXPECT_FALSE(ReplyRules::create(nowhere, 2));
}

}  // namespace reply_rules_test
}  // namespace penstock::nat
