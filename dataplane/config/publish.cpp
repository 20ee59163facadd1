// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config/publish.hpp"

#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "dataplane/base/check.hpp"

namespace penstock::config {
namespace {
constexpr std::chrono::microseconds kGracePoll{20};
}

Result<std::unique_ptr<Publisher>> Publisher::create(uint32_t workers, std::unique_ptr<Snapshot> initial,
                                                     std::chrono::milliseconds wait_max) {
    const size_t size = rte_rcu_qsbr_get_memsize(workers);
    auto* qsbr = static_cast<rte_rcu_qsbr*>(rte_zmalloc("penstock_qsbr", size, RTE_CACHE_LINE_SIZE));
    if (qsbr == nullptr) {
        return fail(Errc::Exhausted,
                    "no memory for the quiescent state of " + std::to_string(workers) + " workers");
    }
    PENSTOCK_CHECK(rte_rcu_qsbr_init(qsbr, workers) == 0);
    for (uint32_t worker = 0; worker < workers; ++worker) {
        PENSTOCK_CHECK(rte_rcu_qsbr_thread_register(qsbr, worker) == 0);
    }
    std::unique_ptr<Publisher> publisher(new Publisher());
    publisher->qsbr_ = qsbr;
    publisher->workers_ = workers;
    publisher->wait_max_ = wait_max;
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

Publisher::Moment Publisher::now() const noexcept {
    return rte_rcu_qsbr_start(qsbr_);
}

// The equivalent of rte_rcu_qsbr_check() per worker, because a stopped worker must be named. Acquires what
// the worker's quiescent() released.
bool Publisher::has_passed(uint32_t worker, Moment moment) const noexcept {
    const uint64_t seen = __atomic_load_n(&qsbr_->qsbr_cnt[worker].cnt, __ATOMIC_ACQUIRE);
    return seen == __RTE_QSBR_CNT_THR_OFFLINE || seen >= moment;
}

bool Publisher::has_passed(Moment moment) const noexcept {
    for (uint32_t worker = 0; worker < workers_; ++worker) {
        if (!has_passed(worker, moment)) {
            return false;
        }
    }
    return true;
}

std::vector<WorkerId> Publisher::late(Moment moment) const {
    std::vector<WorkerId> late;
    for (uint32_t worker = 0; worker < workers_; ++worker) {
        if (!has_passed(worker, moment)) {
            late.push_back({static_cast<uint8_t>(worker)});
        }
    }
    return late;
}

void Publisher::free_retired() {
    std::erase_if(retired_, [this](const Retired& retired) { return has_passed(retired.moment); });
}

size_t Publisher::reclaim() {
    const std::unique_lock publishing(publishing_, std::try_to_lock);
    if (!publishing) {
        return 0;
    }
    free_retired();
    return retired_.size();
}

std::vector<WorkerId> Publisher::publish(std::unique_ptr<Snapshot> next) {
    const std::lock_guard publishing(publishing_);
    free_retired();
    // Workers for which an earlier publication has waited in vain.
    const std::vector<WorkerId> known =
        retired_.empty() ? std::vector<WorkerId>() : late(retired_.front().moment);
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
    // A worker that could hold `old` loaded it before this point; its next quiescent point ends the use.
    const Moment exchanged = now();
    retired_.push_back({exchanged, std::move(old)});
    const auto is_known = [&](WorkerId worker) { return std::ranges::find(known, worker) != known.end(); };
    const auto give_up = std::chrono::steady_clock::now() + wait_max_;
    std::vector<WorkerId> missing;
    // A round of the poll loop takes microseconds, or a time slice if workers share a CPU. The loop sleeps
    // instead of spinning, because a spinning control thread would take that CPU from them.
    while (!std::ranges::all_of(missing = late(exchanged), is_known) &&
           std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(kGracePoll);
    }
    at(Step::BeforeFree);
    free_retired();
    return missing;
}

Snapshot Publisher::current() const {
    const std::lock_guard copying(copying_);
    return *kept_;
}

}  // namespace penstock::config
