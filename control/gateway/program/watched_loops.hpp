// SPDX-License-Identifier: Apache-2.0
// The loops of the gateway's threads, as LoopWatch watches them, with the time that a round may take.
//
// A worker's round takes microseconds, and it sleeps for at most a millisecond. The Linux follower may read a
// large routing table again in one round, and the compiler may process a state of 250,000 endpoints. While
// the follower is stopped, traffic continues with the last routes and neighbours, and new next hops stay
// unresolved. The workers are the first loops, in their order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "control/bfd/frr_link.hpp"
#include "control/flow_records/exporter.hpp"
#include "control/gateway/apply/reconciler.hpp"
#include "control/gateway/care/caretaker.hpp"
#include "control/gateway/program/linux_follower.hpp"
#include "control/gateway/program/loop_watch.hpp"
#include "control/gateway/shares/link_duty.hpp"
#include "dataplane/worker/worker_set.hpp"

namespace penstock::gateway {

// The LoopWatch uses all arguments until it is stopped. `flow_records`: null if they are off; its loop stalls
// with its disk. `bfd`, `link_duty`: null if they are off. `control_rounds`: of the control loop. `report` is
// called after each check, on the watching thread.
[[nodiscard]] LoopWatch::Options watched_loops(worker::WorkerSet& workers, const Reconciler& reconciler,
                                               const LinuxFollower& linux_follower, Caretaker& caretaker,
                                               const flow_records::Exporter* flow_records,
                                               const bfd::FrrLink* bfd, const LinkDuty* link_duty,
                                               const std::atomic<uint64_t>& control_rounds,
                                               std::function<void(const LoopHealth&)> report);

}  // namespace penstock::gateway
