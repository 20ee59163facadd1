// The layouts that the connection table could have had, beside the one it has, each against rte_hash in the same run
// (docs/adr/0007-connection-table-layout.md). Keys, hash, burst and load are the same for all.
#include <array>
#include <string>

#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/micro/candidates/exact_short.hpp"
#include "perf/micro/candidates/fingerprint.hpp"
#include "perf/micro/candidates/tag_bucket.hpp"
#include "perf/micro/population.hpp"
#include "perf/micro/rte_store.hpp"

namespace penstock::perf {
namespace {

template <typename Store>
BurstClock replace(Population<Store>& population, uint64_t budget_cycles) {
    BurstClock clock;
    while (clock.cycles() < budget_cycles) {
        const uint64_t start = cycles_begin();
        population.churn(RteYardstick::kBurst);
        clock.add(cycles_end() - start, RteYardstick::kBurst);
    }
    return clock;
}

// N keys, as in G1.
void measure_size(const Options& options, uint32_t keys) {
    const uint32_t connections = keys / 2;
    const std::string at = size_suffix(keys);
    // 100, 71 and 82 bytes a connection, and a number for each of the four populations.
    if (!fits_memory("candidates", keys,
                     RteStore::memory_needed(connections) + size_t{connections} * (100 + 71 + 82 + 16))) {
        return;
    }
    Population<RteStore> rte(connections);
    Population<candidates::ExactShort> a(connections);
    Population<candidates::Fingerprint> b(connections);
    Population<candidates::TagBucket> c(connections);
    rte.churn(2 * uint64_t{connections});
    a.churn(2 * uint64_t{connections});
    b.churn(2 * uint64_t{connections});
    c.churn(2 * uint64_t{connections});

    std::array<Order, 4> order = {
        Order(OrderKind::Uniform, connections, 1), Order(OrderKind::Uniform, connections, 1),
        Order(OrderKind::Uniform, connections, 1), Order(OrderKind::Uniform, connections, 1)};
    const auto named = [&](const char* what, const char* which) {
        return std::string(what).append(which).append(at);
    };
    const std::array sides = {
        Side{named("lookup.", "rte_hash"),
             [&](uint64_t budget) { return rte.look_up<true>(order[0], budget); }},
        Side{named("lookup.", "a_exact_short"),
             [&](uint64_t budget) { return a.look_up<true>(order[1], budget); }},
        Side{named("lookup.", "b_fingerprint"),
             [&](uint64_t budget) { return b.look_up<true>(order[2], budget); }},
        Side{named("lookup.", "c_tag_bucket"),
             [&](uint64_t budget) { return c.look_up<true>(order[3], budget); }},
    };
    const std::vector<Summary> looked_up = interleave(sides, options.plan);
    const std::array replacing = {
        Side{named("replace.", "rte_hash"), [&](uint64_t budget) { return replace(rte, budget); }},
        Side{named("replace.", "a_exact_short"), [&](uint64_t budget) { return replace(a, budget); }},
        Side{named("replace.", "b_fingerprint"), [&](uint64_t budget) { return replace(b, budget); }},
        Side{named("replace.", "c_tag_bucket"), [&](uint64_t budget) { return replace(c, budget); }},
    };
    const std::vector<Summary> replaced = interleave(replacing, options.plan);
    const std::array<std::string, 3> names = {"a_exact_short", "b_fingerprint", "c_tag_bucket"};
    const std::array<size_t, 3> bytes = {a.store().bytes(), b.store().bytes(), c.store().bytes()};
    for (size_t i = 0; i < names.size(); ++i) {
        print_value(named("lookup.ratio.", names[i].c_str()), looked_up[i + 1].min / looked_up[0].min,
                    "ratio");
        print_value(named("replace.ratio.", names[i].c_str()), replaced[i + 1].min / replaced[0].min,
                    "ratio");
        print_value(named("memory.", names[i].c_str()), static_cast<double>(bytes[i]) / connections,
                    "bytes_per_connection");
    }
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 5> kSizes = {1'000, 100'000, 1'000'000, 4'000'000, 10'000'000};
    constexpr std::array<uint32_t, 2> kQuickSizes = {1'000, 100'000};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, {});
    print_fingerprint();
    start_eal();
    for (const uint32_t keys : options.sizes) {
        measure_size(options, keys);
    }
    return 0;
}
