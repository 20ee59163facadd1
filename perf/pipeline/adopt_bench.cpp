// SPDX-License-Identifier: Apache-2.0
// Adoption of the connections of a former process by one worker: read, examine, insert, derive. Each run has
// a new heir, with empty tables. The time is that of the thread on its processor, so that other programs on
// the machine disturb it less. The yardstick is one copy of the former memory.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "dataplane/adopt/adoption.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/conn/table_description.hpp"
#include "perf/harness/cycles.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/pipeline/filled.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kMillion = 1'000'000;
constexpr uint32_t kRuns = 5;
// The pause of a restart: 0.3 s for each million.
constexpr double kAimMsPerMillion = 300;

double thread_ms() {
    timespec now{};
    PENSTOCK_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

struct Runs {
    std::vector<double> ms;
    void print(const std::string& name, const std::string& at, double per_million) {
        std::ranges::sort(ms);
        print_value(name + ".min" + at, ms.front() / per_million, "ms/million");
        print_value(name + ".median" + at, ms[ms.size() / 2] / per_million, "ms/million");
    }
};

// The former worker's connections among two workers, as after a change of their number: each reads all, and
// takes half. Nothing leads the packets of their clients to the owners. The time of both is added.
void measure_two(uint32_t flows, const adopt::FormerTables& left) {
    Runs adoption;
    uint64_t moved_flows = 0;
    for (uint32_t run = 0; run < kRuns; ++run) {
        const HashKey secret = HashKey::random();
        const std::array heirs{with_room_for(flows, IpFamily::V4, {{0}, 2, secret}),
                               with_room_for(flows, IpFamily::V4, {{1}, 2, secret})};
        std::array<pipeline::WorkerContext*, 2> workers{&heirs[0]->context(), &heirs[1]->context()};
        const double before = thread_ms();
        adopt::Adoption adopting(left, heirs[0]->snapshot(), workers, {cycles_begin()});
        adopting.adopt({0});
        adopting.adopt({1});
        pipeline::MovedFlows moved;
        const adopt::Report report = adopting.finish(moved);
        adoption.ms.push_back(thread_ms() - before);
        PENSTOCK_CHECK(report.all_lost() == 0 && report.all_adopted() > 0);
        moved_flows = report.moved;
    }
    const std::string at = size_suffix(flows);
    adoption.print("adopt.two_workers", at, static_cast<double>(flows) / kMillion);
    print_value("adopt.two_workers.moved" + at, static_cast<double>(moved_flows), "connections");
}

// Read by its description, as a table of another layout is.
void measure_described(uint32_t flows, adopt::FormerTables left, uint32_t capacity) {
    left.layout = conn::describe_tables(capacity);
    Runs adoption;
    for (uint32_t run = 0; run < kRuns; ++run) {
        const auto heir = with_room_for(flows, IpFamily::V4);
        std::array<pipeline::WorkerContext*, 1> workers{&heir->context()};
        const double before = thread_ms();
        adopt::Adoption adopting(left, heir->snapshot(), workers, {cycles_begin()});
        adopting.adopt({0});
        pipeline::MovedFlows moved;
        const adopt::Report report = adopting.finish(moved);
        adoption.ms.push_back(thread_ms() - before);
        PENSTOCK_CHECK(report.all_lost() == 0 && report.all_adopted() > 0);
    }
    adoption.print("adopt.described", size_suffix(flows), static_cast<double>(flows) / kMillion);
}

void measure(uint32_t flows, IpFamily family) {
    const auto former = filled(flows, Protocol::Tcp, family);
    adopt::FormerTables left;
    left.connections.emplace_back(former->table_memory());
    Runs adoption, copy;
    for (uint32_t run = 0; run < kRuns; ++run) {
        const auto heir = with_room_for(flows, family);
        std::array<pipeline::WorkerContext*, 1> workers{&heir->context()};
        const double before = thread_ms();
        adopt::Adoption adopting(left, heir->snapshot(), workers, {cycles_begin()});
        adopting.adopt({0});
        pipeline::MovedFlows moved;
        const adopt::Report report = adopting.finish(moved);
        adoption.ms.push_back(thread_ms() - before);
        PENSTOCK_CHECK(report.all_adopted() == former->context().connections.size() &&
                       report.all_lost() == 0);
        const HugeMemory target(former->table_memory().size());
        const double before_copy = thread_ms();
        std::memcpy(target.span().data(), former->table_memory().data(), former->table_memory().size());
        copy.ms.push_back(thread_ms() - before_copy);
    }
    const std::string name = std::string("adopt.") + (family == IpFamily::V4 ? "ipv4" : "ipv6");
    const std::string at = size_suffix(flows);
    const double millions = static_cast<double>(flows) / kMillion;
    adoption.print(name, at, millions);
    copy.print(name + ".copy", at, millions);
    if (family == IpFamily::V4) {
        measure_two(flows, left);
        measure_described(flows, left, former->context().connections.capacity());
    }
    print_aim_at_most(name + at, adoption.ms.front() / millions, kAimMsPerMillion);
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock;
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 2> kSizes = {kMillion, 10 * kMillion};
    constexpr std::array<uint32_t, 1> kQuickSizes = {100'000};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, {});
    print_fingerprint();
    for (const uint32_t flows : options.sizes) {
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            const uint32_t units = (flows / 9 * 10 + 64) * (family == IpFamily::V4 ? 1 : 2);
            if (fits_memory("adopt", flows, 3 * Gateway::memory_needed(units))) {
                measure(flows, family);
            }
        }
    }
    return 0;
}
