// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "perf/harness/report.hpp"
#include "perf/micro/conn_store.hpp"
#include "perf/micro/population.hpp"
#include "perf/micro/rte_store.hpp"
#include "perf/micro/table_bench.hpp"

namespace penstock::perf {
namespace {

constexpr double kGateFromCache = 0.85;
constexpr double kGateFromMemory = 0.60;
// Up to this size the tables may fit into the cache.
constexpr uint32_t kCachedKeysMax = 100'000;

void measure_size(const Options& options, uint32_t keys) {
    const uint32_t connections = keys / 2;
    const std::string at = size_suffix(keys);
    if (!fits_memory("lookup", keys,
                     ConnStore::memory_needed(connections) + RteStore::memory_needed(connections) +
                         8 * size_t{connections})) {
        return;
    }
    Population<RteStore> rte(connections);
    Population<ConnStore> table(connections);
    rte.churn(2 * uint64_t{connections});
    table.churn(2 * uint64_t{connections});
    print_value("rte_hash.load" + at, rte.store().load() * 100, "%");
    print_value("table.load" + at, table.store().table().slots_used() * 100, "%");

    Order rte_uniform(OrderKind::Uniform, connections, 1), uniform(OrderKind::Uniform, connections, 1);
    const std::array gate_sides = {
        Side{"lookup.rte_hash" + at, [&](uint64_t budget) { return rte.look_up<true>(rte_uniform, budget); }},
        Side{"lookup.table" + at,
             [&](uint64_t budget) { return table.look_up_ahead<true>(uniform, budget); }},
        Side{"lookup_only.rte_hash" + at,
             [&](uint64_t budget) { return rte.look_up<false>(rte_uniform, budget); }},
        Side{"lookup_only.table" + at,
             [&](uint64_t budget) { return table.look_up_ahead<false>(uniform, budget); }},
        // A single burst, as on a worker with low load.
        Side{"lookup_alone.table" + at,
             [&](uint64_t budget) { return table.look_up<true>(uniform, budget); }},
    };
    const std::vector<Summary> result = interleave(gate_sides, options.plan);
    print_value("lookup_alone.ratio" + at, result[4].min / result[0].min, "ratio");
    print_value("lookup_only.ratio" + at, result[3].min / result[2].min, "ratio");
    print_gate_at_most("G1" + at, result[1].min / result[0].min,
                       keys <= kCachedKeysMax ? kGateFromCache : kGateFromMemory);

    WindowPlan brief = options.plan;
    brief.windows = 3;
    brief.spread_max = 1;
    for (const OrderKind kind : {OrderKind::Zipf, OrderKind::Sequential}) {
        std::string suffix(1, '.');
        suffix.append(to_string(kind)).append(at);
        Order rte_order(kind, connections, 1), order(kind, connections, 1);
        const std::array sides = {
            Side{"lookup.rte_hash" + suffix,
                 [&](uint64_t budget) { return rte.look_up<true>(rte_order, budget); }},
            Side{"lookup.table" + suffix,
                 [&](uint64_t budget) { return table.look_up_ahead<true>(order, budget); }},
        };
        interleave(sides, brief);
    }
    const std::array misses = {
        Side{"miss.rte_hash" + at, [&](uint64_t budget) { return rte.miss(budget); }},
        Side{"miss.table" + at, [&](uint64_t budget) { return table.miss(budget); }},
    };
    interleave(misses, brief);
}

}  // namespace

void measure_lookup(const Options& options) {
    for (const uint32_t keys : options.sizes) {
        measure_size(options, keys);
    }
}

}  // namespace penstock::perf
