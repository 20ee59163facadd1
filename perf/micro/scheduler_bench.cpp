// SPDX-License-Identifier: Apache-2.0
// Cost of a pick: every scheduler with 4, 100, 1,000 and 10,000 backends on a gateway of four workers, each
// against rr in the same run; and cost of preparing a Service for it. The results are explained in
// docs/performance.md.
#include "dataplane/lb/scheduler.hpp"

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/harness/windows.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr uint32_t kFlows = 4'096;
constexpr uint32_t kBurst = 8;

struct Subject {
    std::string name;
    lb::Service service;
    double prepare_ms = 0;
};

Subject subject_of(lb::SchedulerKind kind, uint32_t n) {
    Subject made{.name = std::string("pick.") + lb::to_string(kind) + size_suffix(n),
                 .service = {.id = {1}, .scheduler = kind}};
    lb::BackendSet& set = made.service.sets.emplace_back();
    for (uint32_t i = 0; i < n; ++i) {
        // Weights without a common divisor, and open flows, so that no shortcut applies.
        set.usable.push_back({{i},
                              IpAddr::v4(Be32::from_host(0x0a000000u + i)),
                              8'080,
                              static_cast<uint16_t>(1 + i * 7'919 % 100)});
    }
    const auto begin = std::chrono::steady_clock::now();
    lb::prepare(set, kind);
    made.prepare_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return made;
}

void measure(const Options& options, uint32_t n) {
    std::vector<std::vector<stats::BackendCounters>> counters;
    std::vector<const stats::BackendCounters*> rows;
    for (uint32_t w = 0; w < kWorkers; ++w) {
        counters.emplace_back(n);
        rows.push_back(counters.back().data());
        for (uint32_t i = 0; i < n; ++i) {
            counters.back()[i].open.set(1 + (i * 31 + w) % 50);
        }
    }
    std::vector<uint32_t> cursors(lb::SchedulerState::kCursors);
    lb::SchedulerState state(cursors, 1, rows);
    std::vector<packet::FlowKey> flows(kFlows);
    for (uint32_t i = 0; i < kFlows; ++i) {
        flows[i] = {IpAddr::v4(Be32::from_host(0xc6336400u + i * 2'654'435'761u)),
                    IpAddr::v4(80, 11, 12, 10),
                    static_cast<L4Port>(1'024 + i),
                    80,
                    Protocol::Tcp,
                    {}};
    }
    std::vector<Subject> subjects;
    for (const lb::SchedulerKind kind : lb::kSchedulerKinds) {
        subjects.push_back(subject_of(kind, n));
    }
    uint64_t sum = 0;
    std::vector<Side> sides;
    for (const Subject& subject : subjects) {
        sides.push_back({subject.name, [&](uint64_t budget) {
                             BurstClock clock;
                             uint32_t at = 0;
                             while (clock.cycles() < budget) {
                                 const uint64_t begin = cycles_begin();
                                 for (uint32_t i = 0; i < kBurst; ++i) {
                                     sum += lb::pick(subject.service, subject.service.sets[0],
                                                     flows[at++ % kFlows], state);
                                 }
                                 // The whole sum without a limit: scanning thousands of rows takes longer
                                 // than the limit of BurstClock::add().
                                 clock.add_all(cycles_end() - begin, kBurst);
                             }
                             return clock;
                         }});
    }
    const std::vector<Summary> result = interleave(sides, options.plan);
    for (size_t i = 0; i < subjects.size(); ++i) {
        print_value(subjects[i].name + ".to_rr", result[i].min / result[0].min,
                    "ratio");  // rr is the first kind
        print_value(subjects[i].name + ".prepare", subjects[i].prepare_ms, "ms");
    }
    print_remark("sum " + std::to_string(sum));  // uses the picks, so that they are not optimised away
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 4> kSizes = {4, 100, 1'000, 10'000};
    constexpr std::array<uint32_t, 2> kQuickSizes = {4, 1'000};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, {});
    print_fingerprint();
    for (const uint32_t n : options.sizes) {
        measure(options, n);
    }
    return 0;
}
