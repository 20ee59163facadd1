// SPDX-License-Identifier: Apache-2.0
// The same paths for callgrind: instruction counts, which other programs on the machine do not affect (read
// by perf/instructions/report.py).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "perf/exceptional/paths.hpp"
#include "perf/instructions/count.hpp"

namespace penstock::perf {
namespace {

void count(const test::Ends& ends) {
    for (const Journey& journey : exceptional_journeys(ends)) {
        InstructionCount instructions("exceptional." + journey.path.name +
                                      (ends.family == IpFamily::V4 ? ".ipv4" : ".ipv6"));
        const std::string wrong =
            journey.road->drive(journey.path, [&](auto&& work, uint64_t) { instructions.run(work); });
        if (!wrong.empty()) {
            std::fprintf(stderr, "exceptional: %s\n", wrong.c_str());
            std::exit(1);
        }
        instructions.report(journey.path.packets(), "packet");
    }
}

}  // namespace
}  // namespace penstock::perf

int main() {
    penstock::perf::count(penstock::test::ends4());
    penstock::perf::count(penstock::test::ends6());
    return 0;
}
