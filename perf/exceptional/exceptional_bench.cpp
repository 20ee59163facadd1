// SPDX-License-Identifier: Apache-2.0
// Cycles of packets outside established flows and of a packet inside, in the same run. Each burst has one
// kind of packet, as in a flood. `.ratio` is relative to `established` of the same family, by minima. The
// results are explained in docs/performance.md.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "perf/exceptional/paths.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/harness/windows.hpp"

namespace penstock::perf {
namespace {

BurstClock window_of(const Journey& journey, uint64_t budget_cycles) {
    BurstClock clock;
    while (clock.cycles() < budget_cycles) {
        const std::string wrong = journey.road->drive(journey.path, [&](auto&& work, uint64_t packets) {
            const uint64_t start = cycles_begin();
            work();
            clock.add(cycles_end() - start, packets);
        });
        if (!wrong.empty()) {
            std::fprintf(stderr, "exceptional: %s\n", wrong.c_str());
            std::exit(1);
        }
    }
    return clock;
}

void measure(const test::Ends& ends, const WindowPlan& plan) {
    const std::vector<Journey> journeys = exceptional_journeys(ends);
    std::vector<Side> sides;
    for (const Journey& journey : journeys) {
        sides.push_back(
            {"exceptional." + journey.path.name + (ends.family == IpFamily::V4 ? ".ipv4" : ".ipv6"),
             [&](uint64_t budget) { return window_of(journey, budget); }});
    }
    const std::vector<Summary> costs = interleave(sides, plan);
    for (size_t i = 1; i < sides.size(); ++i) {
        print_value(sides[i].name + ".ratio", costs[i].min / costs[0].min, "x");
    }
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock;
    constexpr std::array<uint32_t, 1> kSizes = {perf::Road::kFlows};
    const perf::Options options = perf::read_options(argc, argv, kSizes, kSizes, {});
    perf::print_fingerprint();
    perf::measure(test::ends4(), options.plan);
    perf::measure(test::ends6(), options.plan);
    return 0;
}
