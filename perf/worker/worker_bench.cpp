// SPDX-License-Identifier: Apache-2.0
// A whole worker with established connections: mbufs, receive, stages, disposal, transmit and release of the
// sent mbufs (ports_player.hpp). Both directions apart, full NAT, TCP, uniform random order, every packet
// checked outside the timed spans. The yardstick is DPDK's rte_hash, by bulk lookups of the same number of
// connections, 10M at most.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/check.hpp"
#include "perf/harness/cycles.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/micro/population.hpp"
#include "perf/micro/rte_store.hpp"
#include "perf/pipeline/filled.hpp"
#include "perf/pipeline/flows.hpp"
#include "perf/worker/ports_player.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kMillion = 1'000'000;
constexpr uint32_t kMbufs = 32'768;
static_assert(kMbufs >= PortsPlayer::kEvictedBatch + 1'024);  // the mempool's cache may hold some
// Cycles of an established packet towards the backend, on a Xeon of 2.3 GHz.
struct Aim {
    uint32_t connections;
    double cycles;
};
constexpr std::array<Aim, 5> kAims = {
    {{1'000, 95}, {64'000, 100}, {kMillion, 112}, {10 * kMillion, 145}, {50 * kMillion, 165}}};
constexpr double kAimV6 = 1.30;

enum class Way : uint8_t { Forward, Reply };

// A worker whose established connections have each been replaced once on average.
class Load {
 public:
    Load(IpFamily family, uint32_t connections, rte_mempool* pool)
        : gateway_(with_room_for(connections, family)),
          player_(*gateway_, cycles_per_second(), name_of(family, connections), pool),
          flows_(*gateway_, connections),
          order_(OrderKind::Uniform, connections, 3) {
        flows_.establish(player_, syn_clock_);
        for (uint32_t replaced = 0; replaced < connections; replaced += kReplacedAtOnce) {
            replace();
        }
    }
    static size_t memory_needed(uint32_t connections, uint32_t units) {
        return Gateway::memory_needed((connections / 9 * 10 + 64) * units) +
               connections * (sizeof(uint32_t) + sizeof(Gateway::Binding));
    }

    BurstClock window(uint64_t budget_cycles, Way way, Lines lines) {
        player_.set_lines(lines);
        packets_.resize(PortsPlayer::batch_of(lines));
        BurstClock clock;
        while (clock.cycles() < budget_cycles) {
            for (Packet& packet : packets_) {
                packet = flows_.packet(order_.next(), way == Way::Forward);
            }
            player_.play(packets_, clock);
        }
        return clock;
    }
    [[nodiscard]] double syn_cycles() const { return syn_clock_.per_operation(); }

 private:
    // Fewer than a table of the smallest size has room for.
    static constexpr uint32_t kReplacedAtOnce = 64;

    static std::string name_of(IpFamily family, uint32_t connections) {
        return (family == IpFamily::V4 ? "v4_" : "v6_") + short_count(connections);
    }
    void replace() {
        packets_.clear();
        for (uint32_t i = 0; i < kReplacedAtOnce; ++i) {
            packets_.push_back(flows_.fresh_syn());
        }
        BurstClock unused;
        player_.play(packets_, unused);
        flows_.take_over(player_, packets_, order_);
    }

    std::unique_ptr<Gateway> gateway_;
    PortsPlayer player_;
    Flows flows_;
    Order order_;
    BurstClock syn_clock_;
    std::vector<Packet> packets_;
};

// rte_hash_create() has not enough memory for 50M keys beside the worker's tables.
constexpr uint32_t kYardstickKeysMax = 10 * kMillion;

void measure_size(const Options& options, uint32_t connections, rte_mempool* pool) {
    const std::string at = size_suffix(connections);
    const bool with_v6 = connections <= kMillion && !options.has("--v4-only");
    const uint32_t keys = std::min(connections, kYardstickKeysMax);
    if (!fits_memory("worker", connections,
                     Load::memory_needed(connections, 1) +
                         (with_v6 ? Load::memory_needed(connections, 2) : 0) +
                         RteStore::memory_needed(keys))) {
        return;
    }
    Population<RteStore> rte(keys);
    Order rte_order(OrderKind::Uniform, keys, 5);
    Load v4(IpFamily::V4, connections, pool);
    std::unique_ptr<Load> v6 = with_v6 ? std::make_unique<Load>(IpFamily::V6, connections, pool) : nullptr;
    std::vector<Side> sides = {Side{"rte_hash.lookup" + size_suffix(keys),
                                    [&](uint64_t budget) { return rte.look_up<false>(rte_order, budget); }}};
    const auto add_side = [&](const std::string& name, Load& load, Way way, Lines lines) {
        sides.push_back(Side{"worker." + name + at, [&load, way, lines](uint64_t budget) {
                                 return load.window(budget, way, lines);
                             }});
    };
    add_side("v4.forward", v4, Way::Forward, Lines::Warm);
    add_side("v4.reply", v4, Way::Reply, Lines::Warm);
    if (!options.has("--warm-only")) {
        add_side("v4.forward.evicted", v4, Way::Forward, Lines::Evicted);
        add_side("v4.reply.evicted", v4, Way::Reply, Lines::Evicted);
    }
    const size_t first_v6 = sides.size();
    if (with_v6) {
        add_side("v6.forward", *v6, Way::Forward, Lines::Warm);
        add_side("v6.reply", *v6, Way::Reply, Lines::Warm);
    }
    const std::vector<Summary> result = interleave(sides, options.plan);
    const double forward = result[1].min;
    print_value("worker.v4.new" + at, v4.syn_cycles(), "cycles");
    print_value("worker.v4.forward.ratio" + at, forward / result[0].min, "ratio");
    print_value("worker.v4.reply.ratio" + at, result[2].min / result[0].min, "ratio");
    for (const Aim& aim : kAims) {
        if (aim.connections == connections) {
            print_aim_at_most("worker" + at, forward, aim.cycles);
        }
    }
    if (with_v6) {
        print_value("worker.v6.new" + at, v6->syn_cycles(), "cycles");
        print_aim_at_most("worker.v6_to_v4" + at, result[first_v6].min / forward, kAimV6);
    }
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 4> kSizes = {1'000, 64'000, kMillion, 10 * kMillion};
    constexpr std::array<uint32_t, 2> kQuickSizes = {1'000, 64'000};
    constexpr std::array<std::string_view, 2> kFlags = {"--v4-only", "--warm-only"};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, kFlags);
    print_fingerprint();
    start_eal();
    rte_mempool* const pool =
        rte_pktmbuf_pool_create("worker", kMbufs, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    PENSTOCK_CHECK(pool != nullptr);
    for (const uint32_t connections : options.sizes) {
        measure_size(options, connections, pool);
    }
    return 0;
}
