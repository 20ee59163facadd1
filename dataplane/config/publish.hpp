// SPDX-License-Identifier: Apache-2.0
// Exchanges the snapshot that workers read, and frees the old one when no worker can still read it
// (quiescent-state-based reclamation, DPDK's rte_rcu_qsbr). A worker loads the pointer once per round and
// uses it for the bursts of that round. It reports a quiescent point when it holds no reference into the
// snapshot any more.
//
// A stopped worker reports no quiescent point, and the wait for it is limited. The snapshot that it may still
// read is retired; it is freed only after the worker has continued and reported a quiescent point. Until then
// the other workers receive new snapshots as usual.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/config/snapshot.hpp"

struct rte_rcu_qsbr;

namespace penstock::config {

class Publisher {
 public:
    // Points at which a test can pause a publication and send traffic.
    enum class Step : uint8_t { BeforeExchange, AfterExchange, BeforeFree };

    // Maximum wait of a publication for a worker. A round takes microseconds, or a few time slices on a
    // shared CPU.
    static constexpr std::chrono::milliseconds kWaitMax{2'000};

    static Result<std::unique_ptr<Publisher>> create(uint32_t workers, std::unique_ptr<Snapshot> initial,
                                                     std::chrono::milliseconds wait_max = kWaitMax);
    ~Publisher();  // no worker may be online any more
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    // --- worker threads ---
    void go_online(WorkerId worker) noexcept;
    void go_offline(WorkerId worker) noexcept;
    // Valid until this worker's next quiescent(). Acquires what publish() released.
    [[nodiscard]] const Snapshot* read() const noexcept { return current_.load(std::memory_order_acquire); }
    void quiescent(WorkerId worker) noexcept;

    // --- control threads ---
    // Makes `next` current. Blocks until every online worker has passed a quiescent point, then frees the
    // predecessor. Returns the workers that have not passed one within the limit; the predecessor is then
    // retired. A worker that an earlier call returned, and that has not continued since, is not waited for
    // again. Calls from several control threads are serialized. Sets the generation of `next`.
    std::vector<WorkerId> publish(std::unique_ptr<Snapshot> next);
    // Frees the retired snapshots that no worker can read any more and returns the number that is left. Does
    // not wait: during a publication, which frees them itself, it returns 0.
    size_t reclaim();
    // A point in time, for has_passed().
    using Moment = uint64_t;
    [[nodiscard]] Moment now() const noexcept;
    // Whether every online worker has passed a quiescent point since `moment`. If so, no worker holds a
    // pointer that it read in a round before `moment`.
    [[nodiscard]] bool has_passed(Moment moment) const noexcept;
    // A copy that shares the parts of the current snapshot and keeps them alive.
    [[nodiscard]] Snapshot current() const;

    // Tests only: called at each Step on the publishing thread.
    void set_latch(std::function<void(Step)> latch) { latch_ = std::move(latch); }

 private:
    struct Retired {
        Moment moment;  // when its replacement was published
        std::unique_ptr<Snapshot> snapshot;
    };

    Publisher() = default;
    [[nodiscard]] bool has_passed(uint32_t worker, Moment moment) const noexcept;
    [[nodiscard]] std::vector<WorkerId> late(Moment moment) const;
    void free_retired();
    void at(Step step) const {
        if (latch_) {
            latch_(step);
        }
    }

    std::atomic<const Snapshot*> current_{nullptr};
    rte_rcu_qsbr* qsbr_ = nullptr;
    uint32_t workers_ = 0;
    std::chrono::milliseconds wait_max_{};
    std::mutex publishing_;           // one publication at a time; guards retired_
    std::vector<Retired> retired_;    // in the order of their replacement
    mutable std::mutex copying_;      // guards kept_ for current(); held for a few shared_ptr copies
    std::unique_ptr<Snapshot> kept_;  // owns what current_ points at
    uint64_t generation_ = 0;
    std::function<void(Step)> latch_;
};

}  // namespace penstock::config
