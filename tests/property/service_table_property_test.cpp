// SPDX-License-Identifier: Apache-2.0
// The service table, compared with a std::map from tuples to claims.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "dataplane/lb/service_table.hpp"
#include "dataplane/lb/service_table_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::lb {
namespace service_table_property_test {

using Tuple = std::tuple<IpAddr, L4Port, Protocol>;
constexpr Protocol kProtocols[] = {Protocol::Tcp, Protocol::Udp, Protocol::Sctp};

// Few addresses and ports, so that tuples coincide; both families.
IpAddr some_address(test::Prng& random) {
    const auto low = static_cast<uint8_t>(random.below(6));
    return random.one_in(2) ? IpAddr::v4(192, 0, 2, low)
                            : IpAddr::v6({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, low});
}
L4Port some_port(test::Prng& random) {
    return static_cast<L4Port>(random.one_in(4) ? 65535 - random.below(4) : 62 + random.below(5));
}
Protocol some_protocol(test::Prng& random) {
    return kProtocols[random.below(3)];
}

TEST(ServiceTableProperty, AgreesWithAMap_SVC008_NODEPORT004_NODEPORT005_XIP007) {
    test::Prng random;
    for (int round = 0; round < 300; ++round) {
        std::vector<std::shared_ptr<const Service>> services;
        std::vector<Frontend> frontends;
        std::map<Tuple, const Service*> exact;
        std::map<Tuple, const Service*> node_port;
        std::set<IpAddr> vips;
        std::set<std::pair<L4Port, Protocol>> node_port_numbers;
        std::set<Tuple> kept;
        std::set<IpAddr> endpoints;

        const uint64_t wanted = random.below(200);
        for (uint64_t i = 0; i < wanted; ++i) {
            auto service = std::make_shared<Service>();
            service->protocol = some_protocol(random);
            service->sets.resize(1 + random.below(2));
            for (BackendSet& set : service->sets) {
                set.source = random.one_in(2) ? SourceMode::Keep : SourceMode::Translate;
                for (uint64_t b = random.below(3); b > 0; --b) {
                    set.usable.push_back({.address = some_address(random), .port = some_port(random)});
                    endpoints.insert(set.usable.back().address);
                    if (set.source == SourceMode::Keep) {
                        kept.insert({set.usable.back().address, set.usable.back().port, service->protocol});
                    }
                }
            }
            services.push_back(service);

            const auto cls = static_cast<FrontendClass>(random.below(4));
            const Frontend frontend{.address = some_address(random),
                                    .port = some_port(random),
                                    .protocol = service->protocol,
                                    .cls = cls,
                                    .set = static_cast<uint8_t>(random.below(service->sets.size())),
                                    .service = service};
            auto& claims = cls == FrontendClass::NodePort ? node_port : exact;
            if (!claims.try_emplace({frontend.address, frontend.port, frontend.protocol}, service.get())
                     .second) {
                continue;  // duplicates within a rank are refused; tested in the unit test
            }
            frontends.push_back(frontend);
            if (cls == FrontendClass::NodePort) {
                node_port_numbers.insert({frontend.port, frontend.protocol});
            } else if (cls != FrontendClass::ClusterIp) {
                vips.insert(frontend.address);
            }
        }

        const auto table = ServiceTable::build(frontends, services);
        ASSERT_TRUE(table.has_value()) << table.error().what;
        for (int probe = 0; probe < 300; ++probe) {
            const Tuple tuple{some_address(random), some_port(random), some_protocol(random)};
            const auto& [address, port, protocol] = tuple;
            const Service* expected = exact.contains(tuple)       ? exact.at(tuple)
                                      : node_port.contains(tuple) ? node_port.at(tuple)
                                                                  : nullptr;
            const FrontendRow* row = (*table)->find(address, port, protocol);
            ASSERT_EQ(row == nullptr ? nullptr : row->service, expected)
                << address.to_string() << " " << port;
            ASSERT_EQ((*table)->is_frontend(address, port, protocol), expected != nullptr)
                << address.to_string() << " " << port;
            ASSERT_EQ((*table)->is_vip(address), vips.contains(address)) << address.to_string();
            ASSERT_EQ((*table)->is_node_port(port, protocol), node_port_numbers.contains({port, protocol}))
                << port;
            ASSERT_EQ((*table)->is_kept_backend(address, port, protocol), kept.contains(tuple))
                << address.to_string() << " " << port;
            ASSERT_EQ((*table)->is_endpoint(address), endpoints.contains(address)) << address.to_string();
        }
    }
}

// Versions built from one another by changes, each compared with the expected contents; older versions stay
// unchanged.
TEST(ServiceTableProperty, EachVersionIsItsPredecessorAndTheChanges_SVC008_GEN007) {
    struct Remembered {
        const Service* service = nullptr;  // null: removed
        PlacementModes modes;
        uint64_t gone_as = 0;
    };
    constexpr size_t kRemembered = 5;
    test::Prng random;
    for (int round = 0; round < 40; ++round) {
        ServiceTableBuilder builder(kRemembered);
        std::map<Tuple, Remembered> model;
        std::map<Tuple, std::pair<uint32_t, uint64_t>> kept;  // number of sets, or number of the removal
        std::set<IpAddr> vips;
        std::set<std::pair<L4Port, Protocol>> node_ports;
        std::vector<std::shared_ptr<const Service>> in_force;
        uint64_t departures = 0;
        std::vector<std::pair<std::shared_ptr<const ServiceTable>, std::map<Tuple, Remembered>>> versions;
        const auto forget = [&](auto& all, auto gone_as) {
            std::map<uint64_t, Tuple> gone;
            for (const auto& [tuple, row] : all) {
                if (const uint64_t as = gone_as(row)) {
                    gone.emplace(as, tuple);
                }
            }
            for (auto oldest = gone.begin(); gone.size() > kRemembered; oldest = gone.erase(oldest)) {
                all.erase(oldest->second);
            }
        };
        for (int version = 0; version < 60; ++version) {
            std::set<Tuple> edited;
            for (uint64_t edits = random.below(12); edits > 0; --edits) {
                const Tuple tuple{some_address(random), some_port(random), some_protocol(random)};
                const auto& [address, port, protocol] = tuple;
                if (!edited.insert(tuple).second) {
                    continue;
                }
                Remembered& row = model[tuple];
                if (random.one_in(2)) {
                    builder.erase(address, port, protocol);
                    if (row.service != nullptr) {
                        row.gone_as = ++departures;
                    }
                    row.service = nullptr;
                } else {
                    auto service = std::make_shared<Service>();
                    service->sets.resize(2);
                    for (BackendSet& set : service->sets) {
                        set.source = random.one_in(2) ? SourceMode::Keep : SourceMode::Translate;
                    }
                    const std::optional<uint8_t> inside_set =
                        random.one_in(2) ? std::optional<uint8_t>(1) : std::nullopt;
                    builder.put({.address = address,
                                 .port = port,
                                 .protocol = protocol,
                                 .service = service,
                                 .inside_set = inside_set});
                    row.service = service.get();
                    const auto see = [](SourceModes& modes, SourceMode mode) {
                        modes.current = mode;
                        (mode == SourceMode::Keep ? modes.keep_seen : modes.translate_seen) = true;
                    };
                    see(row.modes, service->sets[0].source);
                    see(row.modes.inside, service->sets[inside_set.value_or(0)].source);
                    row.gone_as = 0;
                }
                if (!row.modes.any()) {
                    model.erase(tuple);
                }
            }
            if (random.one_in(2)) {
                const IpAddr address = some_address(random);
                const bool is_vip = random.one_in(2);
                builder.set_vip(address, is_vip);
                is_vip ? (void)vips.insert(address) : (void)vips.erase(address);
                const std::pair number{some_port(random), some_protocol(random)};
                builder.set_node_port(number.first, number.second, !is_vip);
                is_vip ? (void)node_ports.erase(number) : (void)node_ports.insert(number);
            }
            // One service is added, and one is removed.
            auto service = std::make_shared<Service>();
            service->protocol = some_protocol(random);
            service->sets.resize(2);
            service->sets[0].source = SourceMode::Keep;
            for (uint64_t b = random.below(4); b > 0; --b) {
                service->sets[0].usable.push_back(
                    {.address = some_address(random), .port = some_port(random)});
                service->sets[1].usable.push_back(
                    {.address = some_address(random), .port = some_port(random)});
            }
            builder.add_backends(*service);
            for (const Backend& backend : service->sets[0].usable) {
                auto& [sets, gone_as] = kept[{backend.address, backend.port, service->protocol}];
                ++sets;
                gone_as = 0;
            }
            in_force.push_back(service);
            if (random.one_in(2)) {
                const auto leaving = in_force[random.below(in_force.size())];
                std::erase(in_force, leaving);
                builder.remove_backends(*leaving);
                for (const Backend& backend : leaving->sets[0].usable) {
                    auto& [sets, gone_as] = kept[{backend.address, backend.port, leaving->protocol}];
                    gone_as = --sets == 0 ? ++departures : 0;
                }
            }
            forget(model, [](const Remembered& row) { return row.service == nullptr ? row.gone_as : 0; });
            forget(kept, [](const auto& row) { return row.second; });
            versions.emplace_back(builder.table(), model);

            const ServiceTable& table = *versions.back().first;
            for (const auto& [tuple, count] : kept) {
                const auto& [address, port, protocol] = tuple;
                ASSERT_TRUE(table.is_kept_backend(address, port, protocol))
                    << address.to_string() << " " << port;
            }
            for (int probe = 0; probe < 50; ++probe) {
                const Tuple tuple{some_address(random), some_port(random), some_protocol(random)};
                const auto& [address, port, protocol] = tuple;
                ASSERT_EQ(table.is_kept_backend(address, port, protocol), kept.contains(tuple));
                ASSERT_EQ(table.is_vip(address), vips.contains(address));
                ASSERT_EQ(table.is_node_port(port, protocol), node_ports.contains({port, protocol}));
                const bool is_endpoint = std::ranges::any_of(in_force, [&](const auto& each) {
                    return std::ranges::any_of(each->sets, [&](const BackendSet& set) {
                        return std::ranges::find(set.usable, address, &Backend::address) != set.usable.end();
                    });
                });
                ASSERT_EQ(table.is_endpoint(address), is_endpoint) << address.to_string();
            }
        }
        for (const auto& [table, expected] : versions) {
            size_t rows = 0;
            table->for_each_row([&](const FrontendRow&) { ++rows; });
            for (const auto& [tuple, row] : expected) {
                const auto& [address, port, protocol] = tuple;
                const FrontendRow* found = table->find(address, port, protocol);
                ASSERT_EQ(found == nullptr ? nullptr : found->service, row.service);
                ASSERT_EQ(table->is_frontend(address, port, protocol), row.service != nullptr);
                rows -= row.service == nullptr ? 0 : 1;
                const PlacementModes modes = table->placement_modes(address, port, protocol);
                ASSERT_EQ(modes.translate_seen, row.modes.translate_seen);
                ASSERT_EQ(modes.keep_seen, row.modes.keep_seen);
                ASSERT_EQ(modes.current, row.modes.current);
                ASSERT_EQ(modes.inside, row.modes.inside);
            }
            ASSERT_EQ(rows, 0U) << "a row that the model does not have";
        }
    }
}

// Many rows, as in a large deployment: each is found, and no absent one is.
TEST(ServiceTableProperty, HoldsManyFrontends_SVC008) {
    test::Prng random;
    auto service = std::make_shared<Service>();
    service->sets.resize(1);
    std::map<Tuple, L4Port> model;
    std::vector<Frontend> frontends;
    while (frontends.size() < 50'000) {
        const Frontend frontend{.address = IpAddr::v4(Be32::from_host(static_cast<uint32_t>(random.next()))),
                                .port = static_cast<L4Port>(random.next()),
                                .protocol = some_protocol(random),
                                .service = service};
        if (model.try_emplace({frontend.address, frontend.port, frontend.protocol}, frontend.port).second) {
            frontends.push_back(frontend);
        }
    }
    const auto table = ServiceTable::build(frontends, {service}).value();
    size_t rows = 0;
    table->for_each_row([&](const FrontendRow& row) {
        rows += model.contains({row.address, row.port, row.protocol}) ? 1 : 0;
    });
    EXPECT_EQ(rows, model.size());
    for (const auto& [tuple, port] : model) {
        const auto& [address, tuple_port, protocol] = tuple;
        const FrontendRow* row = table->find(address, tuple_port, protocol);
        ASSERT_NE(row, nullptr);
        ASSERT_EQ(Tuple(row->address, row->port, row->protocol), tuple);
        const Tuple beside{address, static_cast<L4Port>(port + 1), protocol};
        ASSERT_EQ(table->find(address, static_cast<L4Port>(port + 1), protocol) != nullptr,
                  model.contains(beside));
    }
}

}  // namespace service_table_property_test
}  // namespace penstock::lb
