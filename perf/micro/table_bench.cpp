// SPDX-License-Identifier: Apache-2.0
// The connection table against rte_hash in the same run. The results are explained in docs/performance.md.
#include "perf/micro/table_bench.hpp"

#include <array>
#include <string_view>

#include "perf/harness/fingerprint.hpp"
#include "perf/harness/rte_yardstick.hpp"

int main(int argc, char** argv) {
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 5> kSizes = {1'000, 100'000, 1'000'000, 4'000'000, 10'000'000};
    constexpr std::array<uint32_t, 2> kQuickSizes = {1'000, 100'000};
    constexpr std::array<std::string_view, 3> kFlags = {"--lookup", "--setup", "--memory"};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, kFlags);
    print_fingerprint();
    start_eal();
    // Only the named parts, or all of them.
    const auto wants = [&](std::string_view part) { return options.flags.empty() || options.has(part); };
    if (wants("--lookup")) {
        measure_lookup(options);
    }
    if (wants("--setup")) {
        measure_setup(options);
    }
    if (wants("--memory")) {
        measure_memory();
    }
    return 0;
}
