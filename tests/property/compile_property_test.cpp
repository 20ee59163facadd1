// SPDX-License-Identifier: Apache-2.0
// The incremental compiler, compared with one that recomputes everything each time. Random sequences of
// states have few names, addresses, numbers and ids, so that conflicts, leftovers and full tables occur
// often.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/property/full_compile.hpp"
#include "tests/support/prng.hpp"

namespace penstock::gateway {
namespace compile_property_test {

constexpr Protocol kProtocols[] = {Protocol::Tcp, Protocol::Udp};
constexpr L4Port kPorts[] = {80, 30'080, 30'081};

IpAddr vip(uint64_t n) {
    return n % 4 == 3 ? IpAddr::v6({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
                      : IpAddr::v4(192, 0, 2, static_cast<uint8_t>(n % 4));
}
IpAddr endpoint(uint64_t n) {
    return IpAddr::v4(10, 0, 0, static_cast<uint8_t>(n));
}

// The room in a full table is reported as of the time when it became full; nothing else may differ.
bool same_refusal(const model::Refusal& a, const model::Refusal& b) {
    return a.reason == b.reason && (a.reason == model::kCapacityExceeded || a.why == b.why);
}

class World {
 public:
    World(test::Prng& random, uint32_t services_max, uint32_t backends_max)
        : random_(random),
          compiler_(IdMap(services_max, backends_max)),
          full_ids_(services_max, backends_max) {}

    void step() {
        touched_.clear();
        for (uint64_t changes = 1 + random_.below(4); changes > 0; --changes) {
            change_a_service();
        }
        if (random_.one_in(6)) {
            change_addresses();
        }
        if (random_.one_in(10)) {
            touched_.push_back(some_key());  // a superset of the changed keys is allowed
        }
        const CompileInput input{desired_, node_ports_, addresses_};
        compiler_.run(input, touched_);
        auto next = full_compile(input, full_, full_ids_);
        ASSERT_TRUE(next) << next.error().what;
        full_ = std::move(*next);
    }
    void compare() {
        const Compiled& got = *compiler_.compiled();
        ASSERT_EQ(got.refusals.size(), full_.refusals.size());
        for (const auto& [key, refusal] : full_.refusals) {
            ASSERT_TRUE(got.refusals.contains(key)) << refusal.why;
            ASSERT_TRUE(same_refusal(got.refusals.at(key), refusal)) << got.refusals.at(key).why << "\n"
                                                                     << refusal.why;
            refused_ += 1;
            short_ += refusal.reason == model::kCapacityExceeded ? 1 : 0;
            leftovers_ += full_.services.contains(key) ? 1 : 0;
        }
        ASSERT_EQ(got.services.size(), full_.services.size());
        for (const auto& [key, programmed] : full_.services) {
            ASSERT_TRUE(got.services.contains(key)) << key.to_string();
            const Programmed& ours = got.services.at(key);
            ASSERT_EQ(ours.desired, programmed.desired) << key.to_string();
            ASSERT_EQ(ours.filter == nullptr, programmed.filter == nullptr);
            ASSERT_EQ(ours.service->id, programmed.service->id) << key.to_string();
            ASSERT_EQ(ours.service->sets.size(), programmed.service->sets.size());
            for (size_t set = 0; set < ours.service->sets.size(); ++set) {
                ASSERT_EQ(ours.service->sets[set].usable, programmed.service->sets[set].usable)
                    << key.to_string();
                ASSERT_EQ(ours.service->sets[set].source, programmed.service->sets[set].source);
                ASSERT_EQ(ours.service->sets[set].when_empty, programmed.service->sets[set].when_empty)
                    << key.to_string();
            }
        }
        compare_ids();
        compare_tables(*got.table, *full_.table);
    }
    [[nodiscard]] bool met_everything() const { return refused_ > 0 && leftovers_ > 0; }
    [[nodiscard]] uint64_t short_of_ids() const { return short_; }

 private:
    model::ServiceKey some_key() {
        return {"default", std::string(1, static_cast<char>('a' + random_.below(7))), "",
                kProtocols[random_.below(2)]};
    }
    lb::EmptyAction some_empty_action() { return static_cast<lb::EmptyAction>(random_.below(3)); }
    void change_a_service() {
        const model::ServiceKey key = some_key();
        touched_.push_back(key);
        const auto* present = desired_.get(key);
        if (random_.one_in(4)) {
            desired_.erase(key);
        } else if (present != nullptr && random_.one_in(3)) {
            // Changes one endpoint, or only fields for display.
            model::Service next = **present;
            auto& endpoints = next.sets[0].endpoints;
            if (endpoints.empty()) {
                endpoints.push_back({endpoint(random_.below(12)), 8'080, 1, "", ""});
            } else if (random_.one_in(3)) {
                next.sets[0].when_empty = some_empty_action();  // only this: the endpoints stay
            } else if (random_.one_in(2)) {
                endpoints.pop_back();
            } else {
                endpoints.front().zone = endpoints.front().zone.value() + "z";
            }
            desired_.insert_or_assign(key, std::make_shared<const model::Service>(std::move(next)));
        } else {
            desired_.insert_or_assign(key, std::make_shared<const model::Service>(some_service(key)));
        }
    }
    model::Service some_service(const model::ServiceKey& key) {
        model::Service service{.key = key, .service_port = 80};
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            model::BackendSet& set = service.sets.emplace_back();
            set.family = family;
            set.source = random_.one_in(2) ? lb::SourceMode::Keep : lb::SourceMode::Translate;
            set.when_empty = some_empty_action();
        }
        std::vector<uint64_t> chosen;
        for (uint64_t n = random_.below(4); n > 0; --n) {
            chosen.push_back(random_.below(12));
        }
        std::ranges::sort(chosen);
        const auto repeated = std::ranges::unique(chosen);
        chosen.erase(repeated.begin(), repeated.end());
        for (const uint64_t n : chosen) {
            service.sets[0].endpoints.push_back(
                {endpoint(n), 8'080, static_cast<uint16_t>(random_.one_in(5) ? 0 : 1), "", ""});
        }
        for (uint64_t n = random_.below(4); n > 0; --n) {
            model::Frontend frontend;
            frontend.cls = static_cast<lb::FrontendClass>(random_.below(4));
            frontend.port = kPorts[random_.below(3)];
            frontend.address = vip(random_.below(4));
            frontend.family = frontend.address.family();
            if (frontend.cls == lb::FrontendClass::NodePort) {
                frontend.address = {};
            }
            frontend.set = frontend.family == IpFamily::V4 ? 0 : 1;
            frontend.filtered = random_.one_in(4);
            const auto same = [&](const model::Frontend& other) {
                return FrontendKey(other, key.protocol) == FrontendKey(frontend, key.protocol);
            };
            if (std::ranges::none_of(service.frontends, same)) {
                service.frontends.push_back(frontend);
            }
        }
        if (random_.one_in(3)) {
            service.source_ranges.push_back(Prefix::parse("198.51.100.0/24").value());
        }
        return service;
    }
    void change_addresses() {
        addresses_.clear();
        for (uint64_t n = 0; n < 4; ++n) {
            if (random_.one_in(2)) {
                addresses_.push_back({"pen0", vip(n), 24, random_.one_in(2)});
            }
        }
        node_ports_.node_addresses.clear();
        if (random_.one_in(3)) {
            node_ports_.node_addresses.push_back(vip(random_.below(4)));
        }
        node_ports_.primary_only = random_.one_in(4);
    }
    void compare_ids() {
        const IdMap& ids = compiler_.ids();
        ASSERT_EQ(ids.services.size(), full_ids_.services.size());
        for (uint32_t n = 0; n < ids.services.size(); ++n) {
            ASSERT_EQ(*ids.services.key_of({n}), *full_ids_.services.key_of({n})) << n;
            ASSERT_EQ(ids.services.is_live({n}), full_ids_.services.is_live({n})) << n;
        }
        ASSERT_EQ(ids.backends.size(), full_ids_.backends.size());
        for (uint32_t n = 0; n < ids.backends.size(); ++n) {
            ASSERT_EQ(*ids.backends.key_of({n}), *full_ids_.backends.key_of({n})) << n;
            ASSERT_EQ(ids.backends.is_live({n}), full_ids_.backends.is_live({n})) << n;
        }
    }
    static void compare_tables(const lb::ServiceTable& got, const lb::ServiceTable& wanted) {
        for (const Protocol protocol : kProtocols) {
            for (const L4Port port : kPorts) {
                for (uint64_t n = 0; n < 4; ++n) {
                    const auto* ours = got.find(vip(n), port, protocol);
                    const auto* theirs = wanted.find(vip(n), port, protocol);
                    ASSERT_EQ(ours == nullptr, theirs == nullptr) << vip(n).to_string() << " " << port;
                    if (ours != nullptr) {
                        ASSERT_EQ(ours->service->id, theirs->service->id);
                        ASSERT_EQ(ours->backends().usable, theirs->backends().usable);
                        ASSERT_EQ(ours->cls, theirs->cls);
                        ASSERT_EQ(ours->set, theirs->set);
                        ASSERT_EQ(ours->filter == nullptr, theirs->filter == nullptr);
                    }
                    const auto modes = got.placement_modes(vip(n), port, protocol);
                    const auto expected = wanted.placement_modes(vip(n), port, protocol);
                    ASSERT_EQ(modes.translate_seen, expected.translate_seen)
                        << vip(n).to_string() << " " << port;
                    ASSERT_EQ(modes.keep_seen, expected.keep_seen) << vip(n).to_string() << " " << port;
                    ASSERT_TRUE(!modes.any() || modes.current == expected.current)
                        << vip(n).to_string() << " " << port;
                }
                ASSERT_EQ(got.is_node_port(port, protocol), wanted.is_node_port(port, protocol)) << port;
            }
            for (uint64_t n = 0; n < 12; ++n) {
                ASSERT_EQ(got.is_kept_backend(endpoint(n), 8'080, protocol),
                          wanted.is_kept_backend(endpoint(n), 8'080, protocol))
                    << n;
            }
        }
        for (uint64_t n = 0; n < 4; ++n) {
            ASSERT_EQ(got.is_vip(vip(n)), wanted.is_vip(vip(n))) << vip(n).to_string();
        }
    }

    test::Prng& random_;
    DesiredServices desired_;
    model::NodePortAddresses node_ports_;
    std::vector<model::PortAddress> addresses_;
    std::vector<model::ServiceKey> touched_;
    Compiler compiler_;
    FullCompiled full_;
    IdMap full_ids_;
    uint64_t refused_ = 0;
    uint64_t short_ = 0;
    uint64_t leftovers_ = 0;
};

void run(uint32_t services_max, uint32_t backends_max, bool expects_shortage) {
    test::Prng random;
    for (int round = 0; round < 30; ++round) {
        World world(random, services_max, backends_max);
        for (int step = 0; step < 150; ++step) {
            ASSERT_NO_FATAL_FAILURE(world.step()) << "round " << round << ", step " << step;
            ASSERT_NO_FATAL_FAILURE(world.compare()) << "round " << round << ", step " << step;
        }
        EXPECT_TRUE(world.met_everything());
        EXPECT_EQ(world.short_of_ids() > 0, expects_shortage);
    }
}

TEST(CompileProperty, ChangesLeadWhereCompilingAnewDoes_GEN001_GEN007_SVC018_NODEPORT004) {
    run(100, 1'000, false);
}

TEST(CompileProperty, SoTheyDoWhereIdsRunOut_GEN009) {
    run(7, 9, true);
}

}  // namespace compile_property_test
}  // namespace penstock::gateway
