// SPDX-License-Identifier: Apache-2.0
// WorkerSet's side towards Linux: frames of the twins, and next hops to resolve.
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <mutex>

#include "dataplane/worker/worker_set.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {

size_t WorkerSet::take_punted(NicPortId port, PuntClass punt_class, std::span<rte_mbuf*> out) {
    return rte_ring_dequeue_burst(impl_->to_host_[port.value][static_cast<size_t>(punt_class)],
                                  reinterpret_cast<void**>(out.data()), static_cast<unsigned>(out.size()),
                                  nullptr);
}

size_t WorkerSet::send_from_host(NicPortId port, std::span<rte_mbuf*> frames) {
    return rte_ring_enqueue_burst(impl_->from_host_[port.value], reinterpret_cast<void**>(frames.data()),
                                  static_cast<unsigned>(frames.size()), nullptr);
}

void WorkerSet::count_host_drop(DropReason reason, uint64_t packets) {
    impl_->host_drops[static_cast<size_t>(reason)].add(packets);
    if (reason != DropReason::PuntFailed) {
        impl_->host_frames_lost.add(packets);
    }
}

void WorkerSet::host_frames_dropped(NicPortId port, DropReason reason, std::span<rte_mbuf* const> frames) {
    count_host_drop(reason, frames.size());
    const std::lock_guard lock(impl_->host_tap_mutex);
    for (rte_mbuf* const frame : frames) {
        if (impl_->host_tap == nullptr) {
            break;
        }
        impl_->host_tap->dropped(port, reason, {rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len},
                                 rte_get_tsc_cycles());
    }
}

std::optional<NeighbourRequest> WorkerSet::take_neighbour_request() {
    for (const auto& memory : impl_->memory) {
        if (const auto request = memory->resolve.pop()) {
            return NeighbourRequest{request->egress, request->address};
        }
    }
    return std::nullopt;
}

}  // namespace penstock::worker
