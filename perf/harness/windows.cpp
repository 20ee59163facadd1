// SPDX-License-Identifier: Apache-2.0
#include "perf/harness/windows.hpp"

#include <algorithm>

#include "perf/harness/cycles.hpp"
#include "perf/harness/report.hpp"

namespace penstock::perf {
namespace {

Summary summarise(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const double min = values.front();
    const double median = values[values.size() / 2];
    return {min, median, (median - min) / min};
}

}  // namespace

std::vector<Summary> interleave(std::span<const Side> sides, const WindowPlan& plan) {
    const uint64_t budget = cycles_per_second() / 1'000 * plan.window_ms;
    std::vector<std::vector<double>> values(sides.size());
    std::vector<Summary> summaries(sides.size());
    for (const Side& side : sides) {
        side.window(budget / 4);
    }
    for (uint32_t repetition = 0; repetition < 2; ++repetition) {
        for (uint32_t w = 0; w < plan.windows; ++w) {
            for (size_t s = 0; s < sides.size(); ++s) {
                values[s].push_back(sides[s].window(budget).per_operation());
            }
        }
        bool calm = true;
        for (size_t s = 0; s < sides.size(); ++s) {
            summaries[s] = summarise(values[s]);
            calm = calm && summaries[s].spread <= plan.spread_max;
        }
        if (calm) {
            break;
        }
    }
    for (size_t s = 0; s < sides.size(); ++s) {
        print_value(sides[s].name + ".min", summaries[s].min, "cycles");
        print_value(sides[s].name + ".median", summaries[s].median, "cycles");
        print_value(sides[s].name + ".spread", summaries[s].spread * 100, "%");
    }
    return summaries;
}

}  // namespace penstock::perf
