// SPDX-License-Identifier: Apache-2.0
// The adoption of a former process's tables before the workers run: one thread for each worker, on its CPU.
#include <pthread.h>
#include <rte_cycles.h>
#include <sched.h>

#include <thread>
#include <vector>

#include "dataplane/adopt/adoption.hpp"
#include "dataplane/adopt/affinity.hpp"
#include "dataplane/pipeline/flow_records.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {
namespace {

// The calling thread may be bound to a CPU, which new threads inherit. If the CPU is not available, the
// thread runs where it is.
void move_to(unsigned cpu) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

void WorkerSet::Impl::adopt_former() {
    adopted.adopted.resize(workers_.size());
    if (!options.former) {
        return;
    }
    const uint64_t begin = rte_get_tsc_cycles();
    const config::Snapshot snapshot = publisher->current();
    adopt::Adoption adoption(*options.former, snapshot, contexts, {begin});
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < contexts.size(); ++w) {
        threads.emplace_back([&, w, cpu = options.cpus[w]] {
            move_to(cpu);
            adoption.adopt({static_cast<uint8_t>(w)});
            if (contexts[w]->flow_log != nullptr) {
                contexts[w]->flow_log->since = {rte_get_tsc_cycles()};
                pipeline::select_adopted(*contexts[w], snapshot);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    adopted = adoption.finish(moved_flows);
    const adopt::AffinityAdoption entries = adopt::adopt_affinity(
        *options.former, snapshot, affinity, contexts.front()->rate, TscTime{rte_get_tsc_cycles()});
    adopted.affinity_adopted = entries.adopted;
    adopted.affinity_lost = entries.lost;
    const TscRate rate{rte_get_tsc_hz()};
    adopted.microseconds = (rte_get_tsc_cycles() - begin) / (rate.hz / 1'000'000);
    options.former.reset();  // the caller may unmap it now
}

}  // namespace penstock::worker
