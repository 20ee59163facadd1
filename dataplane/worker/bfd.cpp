// SPDX-License-Identifier: Apache-2.0
// The BFD sessions of a WorkerSet.
#include <rte_cycles.h>

#include <vector>

#include "dataplane/base/hash.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {

void WorkerSet::Impl::add_bfd() {
    if (!options.has_bfd) {
        return;
    }
    std::vector<const stats::WorkerCounters*> rounds;
    for (const pipeline::WorkerContext* context : contexts) {
        rounds.push_back(context->counters.worker);
    }
    bfd = std::make_unique<bfd::Engine>(TscRate{rte_get_tsc_hz()}, HashKey::random().k0, rounds);
    for (pipeline::WorkerContext* context : contexts) {
        context->bfd = bfd.get();
    }
}

bfd::Engine* WorkerSet::bfd() noexcept {
    return impl_->bfd.get();
}

}  // namespace penstock::worker
