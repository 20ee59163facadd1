// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "dataplane/nat/port_proposer.hpp"
#include "perf/harness/report.hpp"
#include "perf/micro/conn_store.hpp"
#include "perf/micro/population.hpp"
#include "perf/micro/rte_store.hpp"
#include "perf/micro/table_bench.hpp"

namespace penstock::perf {
namespace {

constexpr double kGateG3 = 0.5;
constexpr double kGateG12 = 128;
constexpr nat::PortRange kPorts{kFirstPort, 65'535};
constexpr uint32_t kBurst = RteYardstick::kBurst;

// Connections with their SNAT ports. A burst of them ends and as many begin, in passes, as the packet path
// handles the misses of a burst.
class NatStore {
 public:
    explicit NatStore(uint32_t connections)
        : store_(connections),
          port_memory_(nat::PortProposer::memory_needed(connections, kPorts, 1)),
          ports_(make(port_memory_, connections)),
          index_of_slot_(connections) {
        for (uint32_t slot = 0; slot < connections; ++slot) {
            open_burst({&slot, 1});
        }
    }
    static size_t memory_needed(uint32_t connections) noexcept {
        return ConnStore::memory_needed(connections) +
               nat::PortProposer::memory_needed(connections, kPorts, 1) +
               connections * sizeof(ConnectionIndex);
    }

    BurstClock replace(uint64_t budget_cycles) {
        BurstClock clock;
        while (clock.cycles() < budget_cycles) {
            std::array<uint32_t, kBurst> slots;
            for (uint32_t& slot : slots) {
                slot = prng_.below(static_cast<uint32_t>(index_of_slot_.size()));
                // Distinct numbers, so that none is closed twice.
                for (const uint32_t* other = slots.data(); other != &slot; ++other) {
                    if (*other == slot) {
                        slot = (slot + kBurst) % static_cast<uint32_t>(index_of_slot_.size());
                        other = slots.data() - 1;
                    }
                }
            }
            const uint64_t start = cycles_begin();
            replace_burst(slots);
            const uint64_t cycles = cycles_end() - start;
            clock.add(cycles, kBurst);
        }
        return clock;
    }

 private:
    static nat::PortProposer make(const HugeMemory& memory, uint32_t connections) {
        auto pool =
            nat::PortProposer::create(memory.span(), connections, kPorts, WorkerId{0}, 1, HashKey::random());
        PENSTOCK_CHECK(pool);
        return std::move(*pool);
    }
    static nat::PoolKey pool_key(const packet::FlowKey& reverse) noexcept {
        return {reverse.destination, reverse.source, reverse.source_port, reverse.protocol};
    }

    PENSTOCK_NOINLINE void replace_burst(std::span<const uint32_t> slots) {
        conn::Table& table = store_.table();
        for (const uint32_t slot : slots) {
            prefetch_read(&table.at(index_of_slot_[slot]));
        }
        for (const uint32_t slot : slots) {
            table.prefetch_for_erase(index_of_slot_[slot]);
            ports_.prefetch(nat::PoolNumber{table.at(index_of_slot_[slot]).snat_pool});
        }
        for (const uint32_t slot : slots) {
            const conn::Entry& entry = table.at(index_of_slot_[slot]);
            ports_.give_back({entry.snat_pool}, entry.destination_port(conn::Direction::Reverse));
            table.erase(index_of_slot_[slot]);
        }
        open_burst(slots);
    }

    // As in pipeline/opening/new_flow: each step for all connections before the next step.
    void open_burst(std::span<const uint32_t> slots) {
        conn::Table& table = store_.table();
        struct Opening {
            packet::FlowKey forward, reverse;
            uint64_t forward_hash, reverse_hash, pool_hash;
            nat::PoolNumber pool;
        };
        std::array<Opening, kBurst> openings;
        const std::span<Opening> opened(openings.data(), slots.size());
        for (Opening& each : opened) {
            each.forward = flow_key(next_number_, conn::Direction::Forward);
            each.reverse = flow_key(next_number_++, conn::Direction::Reverse);
            // One SNAT address is enough: 10M connections to 1,000 endpoints take 10,000 ports towards each.
            each.reverse.destination = v4(0xc000'0201);
            each.forward_hash = table.hash(each.forward);
            table.prefetch_buckets(each.forward_hash);
            each.pool_hash = ports_.hash(pool_key(each.reverse));
            ports_.prefetch(each.pool_hash);
        }
        for (const Opening& each : opened) {
            ports_.prefetch_pool(each.pool_hash);
        }
        table.prefetch_units(static_cast<uint32_t>(slots.size()));
        for (Opening& each : opened) {
            each.pool = ports_.open(pool_key(each.reverse), each.pool_hash);
            propose(each.pool, each.reverse);
            each.reverse_hash = table.hash(each.reverse);
            table.prefetch_buckets(each.reverse_hash);
        }
        for (size_t i = 0; i < slots.size(); ++i) {
            Opening& each = openings[i];
            conn::Connection entry = ConnStore::connection(each.forward, each.reverse);
            entry.snat_pool = each.pool.value;
            conn::Inserted inserted;
            while ((inserted = table.insert(entry, each.forward_hash, table.hash(entry.reverse))).status ==
                   conn::InsertStatus::ReverseTaken) {
                ports_.refuse(each.pool, entry.reverse.destination_port);
                propose(each.pool, entry.reverse);
            }
            PENSTOCK_CHECK(inserted.status == conn::InsertStatus::Inserted);
            ports_.bind(each.pool, entry.reverse.destination_port);
            index_of_slot_[slots[i]] = inserted.index;
        }
    }
    void propose(nat::PoolNumber pool, packet::FlowKey& reverse) {
        const auto port = ports_.propose(pool, {.range = kPorts});
        PENSTOCK_CHECK(port);
        reverse.destination_port = *port;
    }

    ConnStore store_;
    HugeMemory port_memory_;
    nat::PortProposer ports_;
    std::vector<ConnectionIndex> index_of_slot_;
    uint32_t next_number_ = 0;
    Prng prng_{7};
};

BurstClock replace_in_rte(Population<RteStore>& rte, uint64_t budget_cycles) {
    BurstClock clock;
    while (clock.cycles() < budget_cycles) {
        const uint64_t start = cycles_begin();
        rte.churn(kBurst);
        clock.add(cycles_end() - start, kBurst);
    }
    return clock;
}

void measure_size(const Options& options, uint32_t connections, bool gated) {
    const std::string at = size_suffix(connections);
    if (!fits_memory("setup", connections,
                     NatStore::memory_needed(connections) + RteStore::memory_needed(connections) +
                         8 * size_t{connections})) {
        return;
    }
    Population<RteStore> rte(connections);
    NatStore table(connections);
    rte.churn(2 * uint64_t{connections});
    // Twice the table, by the clock of its own windows.
    for (uint64_t replaced = 0; replaced < 2 * uint64_t{connections};) {
        replaced += table.replace(cycles_per_second() / 100).operations();
    }
    const std::array sides = {
        Side{"replace.rte_hash" + at, [&](uint64_t budget) { return replace_in_rte(rte, budget); }},
        Side{"replace.table" + at, [&](uint64_t budget) { return table.replace(budget); }},
    };
    const std::vector<Summary> result = interleave(sides, options.plan);
    const double ratio = result[1].min / result[0].min;
    if (gated) {
        print_gate_at_most("G3", ratio, kGateG3);
    } else {
        print_value("replace.ratio" + at, ratio, "ratio");
    }
}

// The share of its keys at which a table of a quarter million connections first rejects one, without any
// earlier deletion.
void measure_first_failure() {
    constexpr uint32_t kConnections = 250'000;
    RteStore rte(kConnections);
    ConnStore table(kConnections);
    const auto first_failure = [](auto& store, uint32_t most) {
        uint32_t inserted = 0;
        while (inserted < most && store.insert(inserted, inserted)) {
            ++inserted;
        }
        return inserted;
    };
    const uint32_t rte_keys = first_failure(rte, 2 * kConnections);
    print_value("first_failure.rte_hash", 100.0 * rte_keys / kConnections, "%_of_asked");
    const uint32_t table_keys = first_failure(table, kConnections);
    print_value("first_failure.table", 100.0 * table_keys / kConnections, "%_of_asked");
}

}  // namespace

void measure_setup(const Options& options) {
    for (const uint32_t connections : options.sizes) {
        measure_size(options, connections, connections == 10'000'000);
    }
    measure_first_failure();
}

void measure_memory() {
    constexpr uint32_t kConnections = 10'000'000;
    const double table = static_cast<double>(conn::Table::memory_needed(kConnections));
    const double ports = static_cast<double>(nat::PortProposer::memory_needed(kConnections, kPorts, 1));
    print_value("memory.table", table / kConnections, "bytes_per_connection");
    // IPv6: two units, and the same two slots and one port.
    print_value("memory.table.v6",
                static_cast<double>(conn::Table::memory_needed(2 * kConnections)) / kConnections,
                "bytes_per_connection");
    print_value("memory.snat_ports", ports / kConnections, "bytes_per_connection");
    print_gate_at_most("G12", (table + ports) / kConnections, kGateG12);
}

}  // namespace penstock::perf
