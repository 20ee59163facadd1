// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/outgoing_state.hpp"

#include <gtest/gtest.h>

#include <set>

namespace penstock::sync {
namespace outgoing_state_test {

using Services = std::vector<std::shared_ptr<const model::Service>>;

// About 16 bytes per endpoint on the wire.
std::shared_ptr<const model::Service> service(const std::string& name, const std::string& port,
                                              size_t endpoints) {
    auto made = std::make_shared<model::Service>();
    made->key = {"default", name, port, Protocol::Tcp};
    made->service_port = 80;
    made->sets.resize(1);
    for (size_t i = 0; i < endpoints; ++i) {
        made->sets[0].endpoints.push_back(
            {.address = IpAddr::v4(10, static_cast<uint8_t>(i >> 16), static_cast<uint8_t>(i >> 8),
                                   static_cast<uint8_t>(i)),
             .port = 80});
    }
    return made;
}

std::vector<v1::StateMessage> parts_of(OutgoingState state) {
    std::vector<v1::StateMessage> parts;
    while (!state.is_done()) {
        parts.push_back(state.next_part());
    }
    return parts;
}

TEST(OutgoingState, ASmallStateIsOneMessage) {
    const auto parts = parts_of(
        {{.source = "me", .version = 3}, {.services = {service("a", "http", 1)}, .environment = {{}}}});
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].full().version().source(), "me");
    EXPECT_EQ(parts[0].full().version().version(), 3u);
    EXPECT_EQ(parts[0].full().services_size(), 1);
    EXPECT_TRUE(parts[0].full().has_environment());
    EXPECT_FALSE(parts[0].full().more());
}

TEST(OutgoingState, AnEmptyStateIsAMessageToo) {
    const auto parts = parts_of({{.source = "me", .version = 1}, {}});
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_TRUE(parts[0].has_full());
}

TEST(OutgoingState, ALargeStateIsCutBetweenKubernetesServices_GEN007) {
    Services services;
    for (int i = 0; i < 100; ++i) {
        for (const char* port : {"a", "b", "c"}) {
            services.push_back(service("s" + std::to_string(1000 + i), port, 1'000));
        }
    }
    const auto parts =
        parts_of({{.source = "me", .version = 7}, {.services = services, .environment = {{}}}});
    ASSERT_GT(parts.size(), 3u);
    std::set<std::string> seen;
    size_t sent = 0;
    for (const v1::StateMessage& part : parts) {
        EXPECT_EQ(part.full().more(), &part != &parts.back());
        EXPECT_EQ(part.full().has_environment(), &part == &parts.front());
        EXPECT_EQ(part.full().version().version(), 7u);
        EXPECT_LT(part.ByteSizeLong(), 2 * kPartBytes);
        std::set<std::string> here;
        for (const v1::Service& each : part.full().services()) {
            here.insert(each.key().name());
            ++sent;
        }
        for (const std::string& name : here) {
            EXPECT_TRUE(seen.insert(name).second) << name << " is in two parts";
        }
    }
    EXPECT_EQ(sent, services.size());
}

TEST(OutgoingState, AServiceTooLargeForAMessageIsCutBetweenItsPorts_GEN009) {
    Services services;
    for (int port = 0; port < 100; ++port) {
        services.push_back(service("huge", "p" + std::to_string(100 + port), 20'000));
    }
    size_t sent = 0;
    for (const v1::StateMessage& part : parts_of({{.source = "me", .version = 1}, {.services = services}})) {
        EXPECT_LT(part.ByteSizeLong(), kPartBytesMax + kPartBytes);
        sent += static_cast<size_t>(part.full().services_size());
    }
    EXPECT_EQ(sent, services.size());
}

TEST(OutgoingState, ADeltaKeepsWhatAServiceGainsAndLosesTogether_GEN007) {
    Services services;
    std::vector<model::ServiceKey> removed;
    for (int i = 0; i < 30; ++i) {
        const std::string name = "s" + std::to_string(100 + i);
        services.push_back(service(name, "new", 5'000));
        removed.push_back({"default", name, "old", Protocol::Tcp});
    }
    const auto parts =
        parts_of({{.source = "me", .version = 5, .base = 4}, {.services = services, .removed = removed}});
    ASSERT_GT(parts.size(), 1u);
    size_t upserts = 0;
    size_t removals = 0;
    for (const v1::StateMessage& part : parts) {
        const v1::StateDelta& delta = part.delta();
        EXPECT_EQ(delta.base().version(), 4u);
        EXPECT_EQ(delta.version().version(), 5u);
        EXPECT_EQ(delta.more(), &part != &parts.back());
        EXPECT_FALSE(delta.has_environment());
        ASSERT_EQ(delta.upsert_size(), delta.remove_size());
        for (int i = 0; i < delta.upsert_size(); ++i) {
            EXPECT_EQ(delta.upsert(i).key().name(), delta.remove(i).name());
        }
        upserts += static_cast<size_t>(delta.upsert_size());
        removals += static_cast<size_t>(delta.remove_size());
    }
    EXPECT_EQ(upserts, 30u);
    EXPECT_EQ(removals, 30u);
}

}  // namespace outgoing_state_test
}  // namespace penstock::sync
