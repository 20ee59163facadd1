// Exchanges the snapshot that workers read, and frees the old one when none of them can still be reading it (quiescent-state-based
// reclamation, DPDK's rte_rcu_qsbr). A worker takes the pointer once a round, uses it for that round's bursts, and reports a quiescent
// point when it holds nothing of it any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/config/snapshot.hpp"

struct rte_rcu_qsbr;

namespace penstock::config {

class Publisher {
 public:
    // Points between which a test may hold a publication open and send traffic through the seam.
    enum class Step : uint8_t { BeforeExchange, AfterExchange, BeforeFree };

    static Result<std::unique_ptr<Publisher>> create(uint32_t workers, std::unique_ptr<Snapshot> initial);
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
    // Makes `next` current and frees its predecessor. Blocks until every online worker has passed a quiescent point, so a worker calling
    // it would wait for itself. Calls from several control threads take turns. The generation is counted here.
    void publish(std::unique_ptr<Snapshot> next);
    // Blocks until every online worker has passed a quiescent point: what they read in rounds before the call, they hold no more.
    void wait_for_workers() const;
    // A copy that shares the parts of the snapshot in force and keeps them alive.
    [[nodiscard]] Snapshot current() const;

    // Tests only: called at each Step on the publishing thread.
    void set_latch(std::function<void(Step)> latch) { latch_ = std::move(latch); }

 private:
    Publisher() = default;
    void at(Step step) const {
        if (latch_) {
            latch_(step);
        }
    }

    std::atomic<const Snapshot*> current_{nullptr};
    rte_rcu_qsbr* qsbr_ = nullptr;
    std::mutex publishing_;           // one publication at a time
    mutable std::mutex copying_;      // guards kept_ for current(); held for a few shared_ptr copies
    std::unique_ptr<Snapshot> kept_;  // owns what current_ points at
    uint64_t generation_ = 0;
    std::function<void(Step)> latch_;
};

}  // namespace penstock::config
