// SPDX-License-Identifier: Apache-2.0
// One message of the state stream: a violation of the protocol is an error; an invalid service port is
// refused alone.
#include "control/rpc/state_message.hpp"

#include <gtest/gtest.h>

#include "control/rpc/convert.hpp"

namespace penstock::rpc {
namespace state_message_test {

v1::Service service(const std::string& name, uint32_t port = 8080) {
    v1::Service message;
    message.mutable_key()->set_namespace_("default");
    message.mutable_key()->set_name(name);
    message.mutable_key()->set_protocol(v1::PROTOCOL_TCP);
    message.set_service_port(80);
    auto& endpoint = *message.add_sets()->add_endpoints();
    endpoint.set_address("10.0.0.1");
    endpoint.set_port(port);
    return message;
}
void name(v1::StateVersion& version, const std::string& source, uint64_t number) {
    version.set_source(source);
    version.set_version(number);
}
v1::StateMessage full(const std::vector<v1::Service>& services) {
    v1::StateMessage message;
    name(*message.mutable_full()->mutable_version(), "sync", 1);
    for (const auto& one : services) {
        *message.mutable_full()->add_services() = one;
    }
    return message;
}
v1::StateMessage delta(uint64_t base, uint64_t version) {
    v1::StateMessage message;
    name(*message.mutable_delta()->mutable_base(), "sync", base);
    name(*message.mutable_delta()->mutable_version(), "sync", version);
    return message;
}
// For a state that is sent in one part.
Result<CheckedMessage> from_proto(const v1::StateMessage& message) {
    auto checked = StateParts().add(message);
    if (!checked) {
        return std::unexpected(std::move(checked.error()));
    }
    return std::move(checked->value());
}
std::string refusal(const v1::StateMessage& message) {
    const auto checked = from_proto(message);
    EXPECT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Errc::InvalidArgument);
    return checked ? "" : checked.error().what;
}

TEST(StateMessage, AFullStateIsTakenWhole) {
    auto message = full({service("a"), service("b")});
    message.mutable_full()->mutable_environment()->mutable_node_ports()->set_primary_only(true);
    const auto checked = from_proto(message);
    ASSERT_TRUE(checked) << checked.error().what;
    EXPECT_EQ(checked->update.version, (StateVersion{"sync", 1}));
    EXPECT_FALSE(checked->update.base);
    EXPECT_EQ(checked->update.services.size(), 2U);
    EXPECT_TRUE(checked->update.environment->node_ports.primary_only);
    EXPECT_TRUE(checked->refused.empty());
}

TEST(StateMessage, AnInvalidServiceIsRefusedAlone_GEN001) {
    const auto checked = from_proto(full({service("bad", 70000), service("good")}));
    ASSERT_TRUE(checked);
    ASSERT_EQ(checked->update.services.size(), 1U);
    EXPECT_EQ(checked->update.services[0].key.name, "good");
    ASSERT_EQ(checked->refused.size(), 1U);
    EXPECT_EQ(checked->refused[0].outcome(), v1::ServiceResult::OUTCOME_REFUSED);
    EXPECT_EQ(checked->refused[0].key().name(), "bad");
    EXPECT_EQ(checked->refused[0].reason(), "InvalidService");
    EXPECT_EQ(checked->refused[0].why(),
              "service default/bad/TCP: sets[0].endpoints[0]: port 70000 is not in 1-65535");
    ASSERT_EQ(checked->update.invalid.size(), 1U) << "the reconciler must know whose last good version stays";
    EXPECT_EQ(checked->update.invalid[0].first.name, "bad");
}

TEST(StateMessage, AServiceWithoutAUsableKeyIsAnsweredAndOtherwiseForgotten) {
    auto nameless = service("");
    const auto checked = from_proto(full({nameless, service("good")}));
    ASSERT_TRUE(checked);
    EXPECT_EQ(checked->refused.size(), 1U);
    EXPECT_TRUE(checked->update.invalid.empty());
    EXPECT_EQ(checked->update.services.size(), 1U);
}

TEST(StateMessage, OfARepeatedKeyTheFirstCounts) {
    const auto checked = from_proto(full({service("a", 1), service("a", 2)}));
    ASSERT_TRUE(checked);
    ASSERT_EQ(checked->update.services.size(), 1U);
    EXPECT_EQ(checked->update.services[0].sets[0].endpoints[0].port, 1);
    ASSERT_EQ(checked->refused.size(), 1U);
    EXPECT_NE(checked->refused[0].why().find("is listed twice in this state"), std::string::npos);
    EXPECT_TRUE(checked->update.invalid.empty()) << "the first one is valid";
}

TEST(StateMessage, ADeltaNamesItsBaseAndWhatGoes) {
    auto message = delta(4, 6);
    *message.mutable_delta()->add_upsert() = service("a");
    *message.mutable_delta()->add_remove() = service("b").key();
    message.mutable_delta()->add_remove()->set_name("no key at all");
    const auto checked = from_proto(message);
    ASSERT_TRUE(checked) << checked.error().what;
    EXPECT_EQ(*checked->update.base, (StateVersion{"sync", 4}));
    EXPECT_EQ(checked->update.version, (StateVersion{"sync", 6}));
    ASSERT_EQ(checked->update.removed.size(), 1U);
    EXPECT_EQ(checked->update.removed[0].name, "b");
    EXPECT_FALSE(checked->update.environment) << "absent is unchanged";
}

TEST(StateMessage, WhatBreaksTheProtocolIsAnError) {
    EXPECT_NE(refusal({}).find("neither a full state nor a delta"), std::string::npos);
    auto message = full({});
    message.mutable_full()->mutable_version()->clear_source();
    EXPECT_NE(refusal(message).find("full.version: the length of source"), std::string::npos);
    message = full({});
    message.mutable_full()->mutable_version()->set_version(0);
    EXPECT_NE(refusal(message).find("full.version: version must be 1 or more"), std::string::npos);
    message = full({});
    message.mutable_full()->mutable_environment()->mutable_node_ports()->add_within("everywhere");
    EXPECT_NE(refusal(message).find("environment.node_ports.within[0]"), std::string::npos);
    EXPECT_NE(refusal(delta(4, 4)).find("4 of sync does not follow 4 of sync"), std::string::npos);
    EXPECT_NE(refusal(delta(4, 3)).find("does not follow"), std::string::npos);
    message = delta(4, 5);
    message.mutable_delta()->mutable_version()->set_source("other");
    EXPECT_NE(refusal(message).find("5 of other does not follow 4 of sync"), std::string::npos);
    message = delta(4, 5);
    message.mutable_delta()->clear_base();
    EXPECT_NE(refusal(message).find("delta.base"), std::string::npos);
    message = delta(4, 5);
    *message.mutable_delta()->add_upsert() = service("a");
    *message.mutable_delta()->add_remove() = service("a").key();
    EXPECT_NE(refusal(message).find("default/a/TCP is both given and removed"), std::string::npos);
}

v1::StateMessage with_more(v1::StateMessage message) {
    message.has_full() ? message.mutable_full()->set_more(true) : message.mutable_delta()->set_more(true);
    return message;
}

TEST(StateMessage, PartsAreOneState_GEN007) {
    StateParts parts;
    auto first = with_more(full({service("a"), service("bad", 70000)}));
    first.mutable_full()->mutable_environment()->mutable_node_ports()->set_primary_only(true);
    EXPECT_FALSE(parts.add(first).value());
    EXPECT_FALSE(parts.add(with_more(full({}))).value()) << "a part may be empty";
    const auto whole = parts.add(full({service("b"), service("a", 9)})).value();
    ASSERT_TRUE(whole);
    ASSERT_EQ(whole->update.services.size(), 2U);
    EXPECT_EQ(whole->update.services[0].key.name, "a");
    EXPECT_EQ(whole->update.services[0].sets[0].endpoints[0].port, 8080)
        << "the first one counts, over all parts";
    EXPECT_EQ(whole->update.services[1].key.name, "b");
    EXPECT_EQ(whole->refused.size(), 2U);
    EXPECT_EQ(whole->update.invalid.size(), 1U);
    EXPECT_TRUE(whole->update.environment->node_ports.primary_only) << "no later part took it back";
    // The next state starts from nothing.
    const auto next = parts.add(delta(1, 2)).value();
    ASSERT_TRUE(next);
    EXPECT_TRUE(next->update.services.empty());
    EXPECT_FALSE(next->update.environment);
}

TEST(StateMessage, ADeltaMayHaveAnyNumberOfPartsToo) {
    StateParts parts;
    constexpr int kParts = 100;
    constexpr int kEach = 100;
    for (int part = 0; part < kParts; ++part) {
        auto message = delta(1, 2);
        for (int i = 0; i < kEach; ++i) {
            const std::string number = std::to_string(part * kEach + i);
            *message.mutable_delta()->add_upsert() = service("new-" + number);
            *message.mutable_delta()->add_remove() = service("old-" + number).key();
        }
        const bool is_last = part + 1 == kParts;
        const auto whole = parts.add(is_last ? message : with_more(message)).value();
        ASSERT_EQ(whole.has_value(), is_last);
        if (whole) {
            EXPECT_EQ(whole->update.services.size(), size_t{kParts * kEach});
            EXPECT_EQ(whole->update.removed.size(), size_t{kParts * kEach});
        }
    }
}

TEST(StateMessage, PartsThatDoNotBelongTogetherAreAnError) {
    const auto refusal_after = [](const v1::StateMessage& first, const v1::StateMessage& second) {
        StateParts parts;
        EXPECT_FALSE(parts.add(with_more(first)).value());
        const auto refused = parts.add(second);
        EXPECT_EQ(refused.error().code, Errc::InvalidArgument);
        return refused.error().what;
    };
    auto other = full({});
    other.mutable_full()->mutable_version()->set_version(2);
    EXPECT_EQ(refusal_after(full({}), other),
              "a part of version 2 of sync comes before the last part of version 1 of sync");
    EXPECT_NE(refusal_after(delta(1, 3), delta(2, 3)).find("before the last part"), std::string::npos);
    auto same_version = full({});
    same_version.mutable_full()->mutable_version()->set_version(2);
    EXPECT_NE(refusal_after(delta(1, 2), same_version).find("before the last part"), std::string::npos);
    auto give = delta(1, 2);
    *give.mutable_delta()->add_upsert() = service("a");
    auto take = delta(1, 2);
    *take.mutable_delta()->add_remove() = service("a").key();
    EXPECT_NE(refusal_after(give, take).find("default/a/TCP is both given and removed"), std::string::npos);
    EXPECT_NE(refusal_after(take, give).find("default/a/TCP is both given and removed"), std::string::npos);
}

TEST(StateMessage, WhatAnUnfinishedStateMayHoldIsBounded) {
    const auto part = with_more(full({service("a")}));
    StateParts parts((part.ByteSizeLong() + kEntryBytes) * 2);
    EXPECT_TRUE(parts.add(part));
    EXPECT_TRUE(parts.add(part));
    const auto refused = parts.add(part);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::Exhausted);
}

TEST(StateMessage, EntriesOfNothingCountToo) {
    for (const bool removed : {false, true}) {
        auto part = with_more(delta(1, 2));
        for (int entry = 0; entry < 1'000; ++entry) {
            removed ? static_cast<void>(part.mutable_delta()->add_remove())
                    : static_cast<void>(part.mutable_delta()->add_upsert());
        }
        ASSERT_LT(part.ByteSizeLong(), 4'000u);
        const auto refused = StateParts(100'000).add(part);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Errc::Exhausted);
    }
}

TEST(StateMessage, OutcomesKeepKindAndReason) {
    using Kind = ServiceOutcome::Kind;
    const model::ServiceKey key{"default", "a", "", Protocol::Udp};
    EXPECT_EQ(to_proto(ServiceOutcome{key, Kind::Applied, {}}).outcome(), v1::ServiceResult::OUTCOME_APPLIED);
    EXPECT_EQ(to_proto(ServiceOutcome{key, Kind::Removed, {}}).outcome(), v1::ServiceResult::OUTCOME_REMOVED);
    const auto refused = to_proto(ServiceOutcome{key, Kind::Refused, {model::kCapacityExceeded, "why"}});
    EXPECT_EQ(refused.outcome(), v1::ServiceResult::OUTCOME_REFUSED);
    EXPECT_EQ(refused.reason(), "CapacityExceeded");
    EXPECT_EQ(refused.why(), "why");
    EXPECT_EQ(refused.key().protocol(), v1::PROTOCOL_UDP);
}

}  // namespace state_message_test
}  // namespace penstock::rpc
