// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/watched_loops.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "dataplane/base/ids.hpp"
#include "dataplane/stats/counters.hpp"

namespace penstock::gateway {

LoopWatch::Options watched_loops(worker::WorkerSet& workers, const Reconciler& reconciler,
                                 const LinuxFollower& linux_follower, Caretaker& caretaker,
                                 const flow_records::Exporter* flow_records, const bfd::FrrLink* bfd,
                                 const LinkDuty* link_duty, const std::atomic<uint64_t>& control_rounds,
                                 std::function<void(const LoopHealth&)> report) {
    using namespace std::chrono_literals;
    LoopWatch::Options options{.sources = {},
                               .on_change = [&caretaker] { caretaker.look_again(); },
                               .at_each_look =
                                   [&workers, report = std::move(report)](const LoopHealth& health) {
                                       workers.reclaim();
                                       report(health);
                                   }};
    const worker::Inspector inspector = workers.inspect();
    for (uint8_t w = 0; w < inspector.workers(); ++w) {
        options.sources.push_back(
            {{.name = "worker " + std::to_string(w), .limit = 1s, .forwards = true}, [&workers, w] {
                 const worker::Inspector now = workers.inspect();
                 return LoopReading{.rounds = now.counter({w}, stats::Counter::Polls),
                                    .stage = now.worker({w}).phase};
             }});
    }
    options.sources.push_back({{.name = "control loop", .limit = 5s, .forwards = true}, [&control_rounds] {
                                   const uint64_t rounds = control_rounds.load(std::memory_order_relaxed);
                                   return LoopReading{.rounds = rounds, .is_resting = rounds == 0};
                               }});
    options.sources.push_back({{.name = "compiler", .limit = 30s}, [&reconciler] {
                                   const auto progress = reconciler.progress();
                                   return LoopReading{.rounds = progress.rounds,
                                                      .is_resting = progress.is_waiting};
                               }});
    options.sources.push_back({{.name = "linux follower", .limit = 30s}, [&linux_follower] {
                                   const uint64_t rounds = linux_follower.rounds();
                                   return LoopReading{.rounds = rounds, .is_resting = rounds == 0};
                               }});
    options.sources.push_back({{.name = "caretaker", .limit = 10s}, [&caretaker] {
                                   const uint64_t rounds = caretaker.rounds();
                                   return LoopReading{.rounds = rounds, .is_resting = rounds == 0};
                               }});
    if (flow_records != nullptr) {
        options.sources.push_back({{.name = "flow records", .limit = 10s}, [flow_records] {
                                       const uint64_t rounds = flow_records->rounds();
                                       return LoopReading{.rounds = rounds, .is_resting = rounds == 0};
                                   }});
    }
    if (bfd != nullptr) {
        options.sources.push_back({{.name = "BFD", .limit = 10s}, [bfd] {
                                       const uint64_t rounds = bfd->rounds();
                                       return LoopReading{.rounds = rounds, .is_resting = rounds == 0};
                                   }});
    }
    if (link_duty != nullptr) {
        options.sources.push_back({{.name = "shares on links", .limit = 10s}, [link_duty] {
                                       const uint64_t rounds = link_duty->rounds();
                                       return LoopReading{.rounds = rounds, .is_resting = rounds == 0};
                                   }});
    }
    return options;
}

}  // namespace penstock::gateway
