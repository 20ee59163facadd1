// Exchanges the snapshot that workers read, and frees the old one when none of them can still be reading it (quiescent-state-based
// reclamation, DPDK's rte_rcu_qsbr). A worker takes the pointer once a round, uses it for that round's bursts, and reports a quiescent
// point when it holds nothing of it any more.
//
// A worker that has stopped reports none. Waiting for it has a limit: what it may still read is retired, and freed only when it has gone on
// and reported a quiescent point. Until then the other workers get new snapshots as before.
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
    // Points between which a test may hold a publication open and send traffic through the seam.
    enum class Step : uint8_t { BeforeExchange, AfterExchange, BeforeFree };

    // How long a publication waits for a worker. A round takes microseconds, or some time slices on a CPU that is shared.
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
    // Makes `next` current. Blocks until every online worker has passed a quiescent point, then frees the predecessor. Returns the workers
    // that have not passed one within the limit; the predecessor is retired then. A worker that a former call returned, and that has not
    // gone on since, is not waited for again. Calls from several control threads take turns. The generation is counted here.
    std::vector<WorkerId> publish(std::unique_ptr<Snapshot> next);
    // Frees the retired snapshots that no worker can read any more; returns how many are left. Does not wait: during a publication, which
    // frees them itself, it returns 0.
    size_t reclaim();
    // A moment, for has_passed().
    using Moment = uint64_t;
    [[nodiscard]] Moment now() const noexcept;
    // Whether every online worker has passed a quiescent point since: what they read in rounds before the moment, they hold no more.
    [[nodiscard]] bool has_passed(Moment moment) const noexcept;
    // A copy that shares the parts of the snapshot in force and keeps them alive.
    [[nodiscard]] Snapshot current() const;

    // Tests only: called at each Step on the publishing thread.
    void set_latch(std::function<void(Step)> latch) { latch_ = std::move(latch); }

 private:
    struct Retired {
        Moment moment;  // of its replacement
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
