// SPDX-License-Identifier: Apache-2.0
// Whole bursts through the stages, from the PMD's receive call until the packets could be returned to it:
// receive's bookkeeping, parse, lookup, TCP state, translation, checksums, next hop. Both directions in equal
// shares, full NAT, every packet checked outside the timed span.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "perf/harness/cycles.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/micro/population.hpp"
#include "perf/micro/rte_store.hpp"
#include "perf/pipeline/flows.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kMillion = 1'000'000;
constexpr double kG4AtMillion = 3.0, kG4AtTenMillion = 2.2, kG5 = 2.0, kG6 = 0.03, kG13 = 1.35;
constexpr double kAimCached = 150, kAimMillion = 220;
// Every hundredth packet opens a connection, every hundredth has no match.
constexpr uint32_t kOneIn = 100;

// A gateway with its established connections.
class Load {
 public:
    Load(IpFamily family, uint32_t connections, uint32_t burst)
        : gateway_(family, capacity_for(family, connections), cycles_per_second()),
          player_(gateway_, burst, cycles_per_second()),
          flows_(gateway_, connections),
          order_(OrderKind::Uniform, connections, 3) {
        flows_.establish(player_, syn_clock_);
        // Gives each connection's last-seen time a different age, as after seconds of traffic.
        BurstClock unused;
        while (unused.operations() < connections) {
            batch(unused, false);
        }
    }
    static size_t memory_needed(IpFamily family, uint32_t connections) {
        return Gateway::memory_needed(capacity_for(family, connections)) +
               connections * (sizeof(uint32_t) + sizeof(Gateway::Binding));
    }

    BurstClock window(uint64_t budget_cycles, bool mixed) {
        BurstClock clock;
        const uint64_t expiry_before = player_.expiry_cycles();
        while (clock.cycles() < budget_cycles) {
            batch(clock, mixed);
        }
        expiry_cycles_ += player_.expiry_cycles() - expiry_before;
        all_cycles_ += clock.cycles() + player_.expiry_cycles() - expiry_before;
        return clock;
    }

    [[nodiscard]] Player& player() { return player_; }
    [[nodiscard]] double syn_cycles() const { return syn_clock_.per_operation(); }
    [[nodiscard]] double expiry_share() const {
        return static_cast<double>(expiry_cycles_) / static_cast<double>(all_cycles_);
    }

 private:
    // New connections replace others, which are closed a moment later, so the capacity includes one more
    // batch.
    static uint32_t capacity_for(IpFamily family, uint32_t connections) {
        const uint32_t units = family == IpFamily::V6 ? 2 : 1;
        return units * (connections + Player::kFramesMax);
    }

    void batch(BurstClock& clock, bool mixed) {
        std::array<Packet, Player::kFramesMax> packets;
        for (Packet& packet : packets) {
            const uint32_t kind = mixed ? prng_.below(kOneIn) : kOneIn;
            if (kind == 0) {
                packet = flows_.fresh_syn();
            } else if (kind == 1) {
                packet = flows_.stray();
            } else {
                packet = flows_.packet(order_.next(), (prng_.next() >> 63) != 0);
            }
        }
        player_.play(packets, clock);
        if (mixed) {
            syns_.clear();
            for (const Packet& packet : packets) {
                if (packet.outcome == Packet::Outcome::Opens) {
                    syns_.push_back(packet);
                }
            }
            flows_.take_over(player_, syns_, order_);
        }
    }

    Gateway gateway_;
    Player player_;
    Flows flows_;
    Order order_;
    Prng prng_{9};
    BurstClock syn_clock_;
    std::vector<Packet> syns_;
    uint64_t expiry_cycles_ = 0, all_cycles_ = 0;
};

// The pipeline's minimum over IPv4, for the comparison between sizes; 0 if the size was skipped.
double measure_size(const Options& options, uint32_t connections) {
    const std::string at = size_suffix(connections);
    // IPv6's entries are larger, and the gates need IPv6 at a million only.
    const bool with_v6 = connections <= kMillion && !options.has("--v4-only");
    if (!fits_memory("pipeline", connections,
                     Load::memory_needed(IpFamily::V4, connections) +
                         (with_v6 ? Load::memory_needed(IpFamily::V6, connections) : 0) +
                         RteStore::memory_needed(connections))) {
        return 0;
    }
    Population<RteStore> rte(connections);
    Order rte_order(OrderKind::Uniform, connections, 5);
    Load v4(IpFamily::V4, connections, limits::kBurstMax);
    std::unique_ptr<Load> v6;
    std::vector<Side> sides = {
        Side{"rte_hash.lookup" + at, [&](uint64_t budget) { return rte.look_up<false>(rte_order, budget); }},
        Side{"pipeline.v4" + at, [&](uint64_t budget) { return v4.window(budget, false); }},
        Side{"pipeline.v4.mixed" + at, [&](uint64_t budget) { return v4.window(budget, true); }},
    };
    if (with_v6) {
        v6 = std::make_unique<Load>(IpFamily::V6, connections, limits::kBurstMax);
        sides.push_back(Side{"pipeline.v6" + at, [&](uint64_t budget) { return v6->window(budget, false); }});
    }
    const std::vector<Summary> result = interleave(sides, options.plan);
    const double cycles = result[1].min;

    print_value("pipeline.syn" + at, v4.syn_cycles(), "cycles");
    if (connections >= kMillion) {
        print_gate_at_most("G4" + at, cycles / result[0].min,
                           connections == kMillion ? kG4AtMillion : kG4AtTenMillion);
        print_aim_at_most("established" + at, cycles, kAimMillion);
    } else {
        print_value("pipeline.ratio" + at, cycles / result[0].min, "ratio");
        print_aim_at_most("established" + at, cycles, kAimCached);
    }
    print_gate_at_most("G6" + at, v4.expiry_share(), kG6);
    if (with_v6 && connections == kMillion) {
        print_gate_at_most("G13", result[3].min / cycles, kG13);
    } else if (with_v6) {
        print_value("pipeline.v6_to_v4" + at, result[3].min / cycles, "ratio");
    }
    return cycles;
}

// The cycles of an established packet by stage.
void measure_stages(const Options& options, uint32_t connections) {
    Load load(IpFamily::V4, connections, limits::kBurstMax);
    const uint64_t budget = cycles_per_second() / 1'000 * options.plan.window_ms;
    std::array<double, StageCosts::kNames.size()> least{};
    for (uint32_t w = 0; w < options.plan.windows; ++w) {
        StageCosts costs;
        load.player().count_stages(&costs);
        load.window(budget, false);
        for (size_t s = 0; s < least.size(); ++s) {
            const double cycles = static_cast<double>(costs.cycles[s]) / static_cast<double>(costs.packets);
            least[s] = w == 0 ? cycles : std::min(least[s], cycles);
        }
    }
    for (size_t s = 0; s < least.size(); ++s) {
        print_value(std::string("stage.").append(StageCosts::kNames[s]).append(size_suffix(connections)),
                    least[s], "cycles");
    }
}

// Burst sizes, at the first requested size.
void sweep_bursts(const Options& options, uint32_t connections) {
    std::vector<std::unique_ptr<Load>> loads;
    std::vector<Side> sides;
    for (uint32_t burst = 4; burst <= limits::kBurstMax; burst *= 2) {
        loads.push_back(std::make_unique<Load>(IpFamily::V4, connections, burst));
        sides.push_back(Side{
            std::string("pipeline.v4.burst").append(std::to_string(burst)).append(size_suffix(connections)),
            [load = loads.back().get()](uint64_t budget) { return load->window(budget, false); }});
    }
    interleave(sides, options.plan);
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 4> kSizes = {1'000, 64'000, kMillion, 10 * kMillion};
    constexpr std::array<uint32_t, 2> kQuickSizes = {1'000, 64'000};
    constexpr std::array<std::string_view, 3> kFlags = {"--sweep", "--stages", "--v4-only"};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, kFlags);
    print_fingerprint();
    if (options.has("--stages")) {
        for (const uint32_t connections : options.sizes) {
            measure_stages(options, connections);
        }
        return 0;
    }
    if (options.has("--sweep")) {
        for (const uint32_t connections : options.sizes) {
            sweep_bursts(options, connections);
        }
        return 0;
    }
    start_eal();
    double smallest = 0;
    for (const uint32_t connections : options.sizes) {
        const double cycles = measure_size(options, connections);
        if (connections == kSizes.front()) {
            smallest = cycles;
        } else if (connections == kSizes.back() && smallest > 0 && cycles > 0) {
            print_gate_at_most("G5", cycles / smallest, kG5);
        }
    }
    return 0;
}
