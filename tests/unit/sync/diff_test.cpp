#include "control/sync/diff.hpp"

#include <gtest/gtest.h>

#include "tests/support/prng.hpp"

namespace penstock::sync {
namespace {

// What a gateway does with changes, in the simplest way that could be right.
model::Desired apply(const Changes& changes, model::Desired state) {
    for (const model::Service& service : changes.upsert) {
        state.services[service.key] = service;
    }
    for (const model::ServiceKey& key : changes.remove) {
        EXPECT_EQ(state.services.erase(key), 1u) << "removed what was not there: " << key.to_string();
    }
    if (changes.node_port_addresses) {
        state.node_port_addresses = *changes.node_port_addresses;
    }
    return state;
}

model::Service service_named(const std::string& name, L4Port port) {
    model::Service service;
    service.key = {"default", name, "http", Protocol::Tcp};
    service.service_port = port;
    service.sets.resize(1);
    return service;
}

// Few names and few variations, so that equal, changed, new and removed services all occur.
model::Desired random_state(test::Prng& random) {
    model::Desired state;
    const uint64_t count = random.below(8);
    for (uint64_t i = 0; i < count; ++i) {
        model::Service service = service_named("s" + std::to_string(random.below(8)), static_cast<L4Port>(random.between(1, 2)));
        const uint64_t endpoints = random.below(3);
        for (uint64_t endpoint = 0; endpoint < endpoints; ++endpoint) {
            service.sets[0].endpoints.push_back({.address = IpAddr::v4(10, 0, 0, static_cast<uint8_t>(endpoint)), .port = 80});
        }
        state.services[service.key] = service;
    }
    state.node_port_addresses.primary_only = random.one_in(2);
    return state;
}

TEST(Diff, AppliedToTheOldStateGivesTheNewOne_GEN006) {
    test::Prng random;
    for (int i = 0; i < 20'000; ++i) {
        const model::Desired from = random_state(random);
        const model::Desired to = random_state(random);
        const Changes changes = diff(from, to);
        ASSERT_EQ(apply(changes, from), to);
        ASSERT_EQ(changes.is_empty(), from == to);
        for (const model::Service& service : changes.upsert) {
            const auto old = from.services.find(service.key);
            ASSERT_TRUE(old == from.services.end() || old->second != service) << "an unchanged service was sent";
        }
    }
}

TEST(Diff, AllPortsOfAServiceTravelTogether_GEN007) {
    model::Desired from;
    model::Desired to;
    for (const char* port : {"http", "https", "admin"}) {
        model::Service service = service_named("web", 80);
        service.key.port_name = port;
        from.services[service.key] = service;
        service.service_port = 81;
        to.services[service.key] = service;
    }
    EXPECT_EQ(diff(from, to).upsert.size(), 3u);
}

}  // namespace
}  // namespace penstock::sync
