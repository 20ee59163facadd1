// SPDX-License-Identifier: Apache-2.0
#include "perf/instructions/rooms.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/lb/scheduler.hpp"
#include "dataplane/nat/source_search.hpp"
#include "dataplane/packet/parse.hpp"
#include "perf/instructions/count.hpp"
#include "perf/instructions/world.hpp"
#include "tests/support/aligned_memory.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kCalls = 4'096;
// Nine tenths of 2^14.
constexpr uint32_t kHeld = 14'745;

std::string region(const char* call, IpFamily family) {
    return std::string(call) + (family == IpFamily::V4 ? ".ipv4" : ".ipv6");
}

conn::Connection connection_of(IpFamily family, uint32_t n) {
    conn::Connection connection;
    connection.forward = client_flow(family, Protocol::Tcp, n);
    // One backend for all: the SNAT port distinguishes the replies. When the SNAT ports are used up, a second
    // backend port continues.
    connection.reverse.source = client_flow(family, Protocol::Tcp, 1).destination;
    connection.reverse.source_port = static_cast<L4Port>(8'080 + n / 60'000);
    connection.reverse.destination = client_flow(family, Protocol::Tcp, 2).destination;
    connection.reverse.destination_port = static_cast<L4Port>(1'024 + n % 60'000);
    connection.reverse.protocol = Protocol::Tcp;
    connection.state = static_cast<uint8_t>(conn::TcpState::Established);
    connection.service = {1};
    connection.backend = {1};
    return connection;
}

void count_table(IpFamily family) {
    // Nine tenths of its capacity are used; an IPv6 connection takes two units.
    const uint32_t capacity = kHeld / 9 * 10 * (family == IpFamily::V6 ? 2 : 1);
    const test::AlignedMemory memory(conn::Table::memory_needed(capacity));
    auto table = conn::Table::create(memory.span(), capacity, {1, 2});
    PENSTOCK_CHECK(table);
    const auto insert = [&](const conn::Connection& entry) {
        return table->insert(entry, table->hash(entry.forward), table->hash(entry.reverse));
    };
    for (uint32_t n = 0; n < kHeld; ++n) {
        PENSTOCK_CHECK(insert(connection_of(family, n)).status == conn::InsertStatus::Inserted);
    }
    std::vector<packet::FlowKey> held, unknown;
    std::vector<conn::Connection> entries;
    for (uint32_t n = 0; n < kCalls; ++n) {
        const conn::Connection one = connection_of(family, n * (kHeld / kCalls));
        held.push_back(n % 2 == 0 ? one.forward : one.reverse);
        entries.push_back(connection_of(family, kHeld + n));
        unknown.push_back(entries.back().forward);
    }
    {
        std::vector<uint64_t> hashes(kCalls);
        InstructionCount count(region("conn.hash", family));
        count.run([&] {
            for (uint32_t n = 0; n < kCalls; ++n) {
                hashes[n] = table->hash(held[n]);
            }
        });
        count.report(kCalls, "call");
    }
    const auto find = [&](const char* name, const std::vector<packet::FlowKey>& keys,
                          uint32_t hits_expected) {
        uint32_t hits = 0;
        InstructionCount count(region(name, family));
        count.run([&] {
            for (const packet::FlowKey& key : keys) {
                hits += table->find(key, table->hash(key)).is_hit();
            }
        });
        count.report(kCalls, "call");
        PENSTOCK_CHECK(hits == hits_expected);
    };
    find("conn.hash_and_find_hit", held, kCalls);
    find("conn.hash_and_find_miss", unknown, 0);
    {
        std::array<uint64_t, limits::kBurstMax> hashes;
        std::vector<conn::Found> found(kCalls);
        InstructionCount count(region("conn.find_burst", family));
        for (uint32_t first = 0; first < kCalls; first += limits::kBurstMax) {
            const auto key_at = [&](uint32_t i) -> const packet::FlowKey& { return held[first + i]; };
            count.run(
                [&] { table->find_burst(limits::kBurstMax, key_at, hashes.data(), found.data() + first); });
        }
        count.report(kCalls, "key");
        PENSTOCK_CHECK(std::ranges::all_of(found, &conn::Found::is_hit));
    }

    // Inserts into a table that stays nine tenths full.
    constexpr uint32_t kBatch = 128;
    std::vector<ConnectionIndex> indices(kBatch);
    InstructionCount count(region("conn.insert_and_erase", family));
    for (uint32_t first = 0; first < kCalls; first += kBatch) {
        count.run([&] {
            for (uint32_t n = 0; n < kBatch; ++n) {
                indices[n] = insert(entries[first + n]).index;
            }
            for (const ConnectionIndex index : indices) {
                table->erase(index);
            }
        });
    }
    count.report(kCalls, "call");
    PENSTOCK_CHECK(table->size() == kHeld);
}

void count_parse(IpFamily family) {
    const Frame frame = make_frame(client_flow(family, Protocol::Tcp, 0), test::kUp, kAck);
    packet::Parsed parsed;
    uint32_t accepted = 0;
    InstructionCount count(region("packet.parse", family));
    count.run([&] {
        for (uint32_t n = 0; n < kCalls; ++n) {
            accepted += packet::parse(frame.bytes, parsed).has_value();
            keep(parsed);
        }
    });
    count.report(kCalls, "call");
    PENSTOCK_CHECK(accepted == kCalls);
}

void count_services(IpFamily family, const config::Snapshot& snapshot) {
    std::vector<packet::FlowKey> flows;
    for (uint32_t n = 0; n < kCalls; ++n) {
        flows.push_back(client_flow(family, Protocol::Tcp, n));
    }
    std::vector<const lb::FrontendRow*> rows(kCalls);
    {
        InstructionCount count(region("lb.find", family));
        count.run([&] {
            for (uint32_t n = 0; n < kCalls; ++n) {
                rows[n] = snapshot.services->find(flows[n].destination, flows[n].destination_port,
                                                  flows[n].protocol);
            }
        });
        count.report(kCalls, "call");
    }
    std::vector<uint32_t> cursors(lb::SchedulerState::kCursors);
    lb::SchedulerState state(cursors, 1, {});
    for (const lb::SchedulerKind kind : {lb::SchedulerKind::RoundRobin, lb::SchedulerKind::Maglev}) {
        uint32_t picks = 0;
        uint64_t sum = 0;
        InstructionCount count(
            region(kind == lb::SchedulerKind::Maglev ? "lb.pick_maglev" : "lb.pick_round_robin", family));
        for (uint32_t n = 0; n < kCalls; ++n) {
            PENSTOCK_CHECK(rows[n] != nullptr);
            if (rows[n]->service->scheduler == kind) {
                count.run([&] { sum += lb::pick(*rows[n]->service, rows[n]->backends(), flows[n], state); });
                ++picks;
            }
        }
        keep(sum);
        count.report(picks, "call");
    }
}

// Connections to sixteen endpoints: with 512 of them live, no pool has a map; with 32,768, each has one.
void count_snat_ports(IpFamily family, const config::Snapshot& snapshot, uint32_t live, const char* suffix) {
    const uint32_t connections = live + kCalls;
    const test::AlignedMemory memory(nat::PortProposer::memory_needed(connections, {}, 1));
    auto ports = nat::PortProposer::create(memory.span(), connections, {}, {0}, 1, {1, 2});
    PENSTOCK_CHECK(ports);
    std::vector<IpAddr> endpoints;
    std::map<uint32_t, const lb::Service*> services;  // sorted, for the same order in every run
    snapshot.services->for_each_row(
        [&](const lb::FrontendRow& row) { services.emplace(row.service->id.value, row.service); });
    for (const auto& [id, service] : services) {
        for (const lb::Backend& backend : service->sets.front().usable) {
            if (backend.address.family() == family && endpoints.size() < 16) {
                endpoints.push_back(backend.address);
            }
        }
    }
    const nat::HostPorts host{snapshot.services->node_port_bits(Protocol::Tcp), 1};
    const auto begin = [&](nat::SourceSearch& search, uint32_t n) PENSTOCK_INLINE_LAMBDA {
        std::construct_at(&search, *ports, *snapshot.snat, host,
                          nat::BindRequest{endpoints[n % 16], 8'080, Protocol::Tcp, test::kCluster, n});
    };
    for (uint32_t n = 0; n < live; ++n) {
        nat::SourceSearch search;
        begin(search, n);
        search.prefetch_pool(*ports);
        PENSTOCK_CHECK(search.first(*ports) != nullptr);
        search.confirm(*ports);
    }
    constexpr uint32_t kBatch = 128;
    std::vector<nat::SourceSearch> searches(kBatch);
    std::vector<const nat::Source*> sources(kBatch);
    const auto count_step = [&](const char* name, auto&& counted) {
        InstructionCount count(region(name, family) + suffix);
        for (uint32_t first = 0; first < kCalls; first += kBatch) {
            const auto search = [&](uint32_t n) PENSTOCK_INLINE_LAMBDA { begin(searches[n], first + n); };
            const auto propose = [&](uint32_t n) PENSTOCK_INLINE_LAMBDA {
                searches[n].prefetch_pool(*ports);
                sources[n] = searches[n].first(*ports);
            };
            const auto confirm = [&](uint32_t n) PENSTOCK_INLINE_LAMBDA { searches[n].confirm(*ports); };
            const auto give_back = [&](uint32_t n) PENSTOCK_INLINE_LAMBDA {
                ports->give_back(sources[n]->pool, sources[n]->port);
            };
            const auto step = [&](int number, auto&& work) {
                const auto all = [&] {
                    for (uint32_t n = 0; n < kBatch; ++n) {
                        work(n);
                    }
                };
                if (number == counted) {
                    count.run(all);
                } else {
                    all();
                }
            };
            step(0, search);
            step(1, propose);
            step(2, confirm);
            step(3, give_back);
        }
        count.report(kCalls, "call");
    };
    count_step("nat.search", 0);
    count_step("nat.propose", 1);
    count_step("nat.bind", 2);
    count_step("nat.give_back", 3);
    PENSTOCK_CHECK(ports->in_use() == live);
}

void count_routes(IpFamily family, const config::Snapshot& snapshot) {
    // Clients and backends alternate, as in a gateway's traffic.
    std::vector<IpAddr> destinations;
    const auto& neighbours = snapshot.routes->neighbours();
    for (uint32_t n = 0; destinations.size() < kCalls; ++n) {
        const IpAddr& neighbour = neighbours[n % neighbours.size()].address;
        if (neighbour.family() == family) {
            destinations.push_back(neighbour);
            destinations.push_back(client_flow(family, Protocol::Tcp, n * 32'768 % 1'000'000).source);
        }
    }
    uint32_t found = 0;
    InstructionCount count(region("route.hop", family));
    count.run([&] {
        for (const IpAddr& destination : destinations) {
            found += snapshot.routes->hop(destination) != nullptr;
        }
    });
    count.report(destinations.size(), "call");
    PENSTOCK_CHECK(found == destinations.size());
}

}  // namespace

void count_rooms(IpFamily family, const config::Snapshot& snapshot) {
    count_parse(family);
    count_table(family);
    count_services(family, snapshot);
    count_snat_ports(family, snapshot, 512, "");
    count_snat_ports(family, snapshot, 32'768, ".with_map");
    count_routes(family, snapshot);
}

}  // namespace penstock::perf
