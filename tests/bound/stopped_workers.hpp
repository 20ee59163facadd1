// SPDX-License-Identifier: Apache-2.0
// Workers in DPDK's environment whose loops are stopped. The test's thread runs the stages on their contexts,
// so nothing else changes their state between two packets. The thread that creates them runs all calls.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/copies/store.hpp"
#include "dataplane/pipeline/stages.hpp"
#include "dataplane/worker/inspect.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "tests/support/prng.hpp"

namespace penstock::test {

// Result of the stages for one packet.
struct PacketResult {
    Verdict verdict = Verdict::None;
    DropReason reason{};
    bool is_answer = false;
    NicPortId egress;  // for Punt: the port of the twin
    IpAddr next_hop;   // for Hold
    std::vector<uint8_t> frame;
    WorkerId worker{0};      // the last one that processed the packet
    bool opened = false;     // a connection
    bool reclaimed = false;  // a SNAT port
};

// Workers whose loops are stopped.
class StoppedWorkers {
 public:
    // `count`: 1 to kTestWorkersMax. With 4 workers, the ports have predictable RSS.
    explicit StoppedWorkers(uint32_t count);

    void publish(const config::Snapshot& snapshot);
    [[nodiscard]] worker::Inspector inspect() const { return workers_->inspect(); }
    [[nodiscard]] uint32_t count() const { return count_; }

    // Not const: the loops are stopped, and this thread acts in their place.
    pipeline::WorkerContext& context(WorkerId id);

    // Processes one packet as the loops of the workers and their rings would.
    PacketResult run(std::vector<uint8_t> frame, NicPortId port, WorkerId receiver);

    template <typename Visit>
    void for_each_unit(Visit&& visit) {
        for (uint8_t w = 0; w < count_; ++w) {
            pipeline::WorkerContext& own = context({w});
            for (uint32_t unit = 0; unit < own.connections.high_water(); ++unit) {
                if (own.connections.is_live(unit)) {
                    visit(own, ConnectionIndex{unit});
                }
            }
        }
    }

    // Any live connection; its worker is null if there is none.
    std::pair<pipeline::WorkerContext*, ConnectionIndex> some_connection(Prng& random);

    void close_all();
    // Turns a live connection into a copy of one of another gateway. False: another copy has one of its keys.
    bool make_copy(pipeline::WorkerContext& own, ConnectionIndex index);
    [[nodiscard]] copies::Store& copies() { return *copies_; }
    void establish_all();
    // Puts a connection into a state that packets would produce only after many steps.
    static void change_state(Prng& random, pipeline::WorkerContext& own, ConnectionIndex index);

 private:
    // The time of the next round. It advances by a constant, so that a replay does not depend on the speed of
    // the machine.
    TscTime next_reading();
    [[nodiscard]] uint64_t sum(stats::Counter counter) const;

    uint32_t count_;
    std::unique_ptr<copies::Store> copies_;
    TscTime reading_;
    pipeline::Burst burst_;
    std::unique_ptr<worker::WorkerSet> workers_;
};

}  // namespace penstock::test
