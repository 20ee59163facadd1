#include "dataplane/config/publish.hpp"

#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include <chrono>
#include <string>
#include <thread>

#include "dataplane/base/check.hpp"

namespace penstock::config {
namespace {
constexpr std::chrono::microseconds kGracePoll{20};
}

Result<std::unique_ptr<Publisher>> Publisher::create(uint32_t workers, std::unique_ptr<Snapshot> initial) {
    const size_t size = rte_rcu_qsbr_get_memsize(workers);
    auto* qsbr = static_cast<rte_rcu_qsbr*>(rte_zmalloc("penstock_qsbr", size, RTE_CACHE_LINE_SIZE));
    if (qsbr == nullptr) {
        return fail(Errc::Exhausted, "no memory for the quiescent state of " + std::to_string(workers) + " workers");
    }
    PENSTOCK_CHECK(rte_rcu_qsbr_init(qsbr, workers) == 0);
    for (uint32_t worker = 0; worker < workers; ++worker) {
        PENSTOCK_CHECK(rte_rcu_qsbr_thread_register(qsbr, worker) == 0);
    }
    std::unique_ptr<Publisher> publisher(new Publisher());
    publisher->qsbr_ = qsbr;
    initial->generation = ++publisher->generation_;
    publisher->kept_ = std::move(initial);
    publisher->current_.store(publisher->kept_.get(), std::memory_order_release);
    return publisher;
}

Publisher::~Publisher() {
    rte_free(qsbr_);
}

void Publisher::go_online(WorkerId worker) noexcept {
    rte_rcu_qsbr_thread_online(qsbr_, worker.value);
}
void Publisher::go_offline(WorkerId worker) noexcept {
    rte_rcu_qsbr_thread_offline(qsbr_, worker.value);
}
void Publisher::quiescent(WorkerId worker) noexcept {
    rte_rcu_qsbr_quiescent(qsbr_, worker.value);
}

void Publisher::publish(std::unique_ptr<Snapshot> next) {
    const std::lock_guard publishing(publishing_);
    next->generation = ++generation_;
    at(Step::BeforeExchange);
    std::unique_ptr<Snapshot> old;
    {
        const std::lock_guard copying(copying_);
        old = std::move(kept_);
        kept_ = std::move(next);
        current_.store(kept_.get(), std::memory_order_release);
    }
    at(Step::AfterExchange);
    // Every worker that could hold `old` took it before this; each one's next quiescent point ends that.
    wait_for_workers();
    at(Step::BeforeFree);
}

// A round of the poll loop takes microseconds, or a time slice where workers share a CPU: worth a nap, because a spinning control thread
// would take that very CPU from them.
void Publisher::wait_for_workers() const {
    const uint64_t token = rte_rcu_qsbr_start(qsbr_);
    while (rte_rcu_qsbr_check(qsbr_, token, false) == 0) {
        std::this_thread::sleep_for(kGracePoll);
    }
}

Snapshot Publisher::current() const {
    const std::lock_guard copying(copying_);
    return *kept_;
}

}  // namespace penstock::config
