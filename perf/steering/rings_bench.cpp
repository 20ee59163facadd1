// SPDX-License-Identifier: Apache-2.0
// Cost of a handed-off packet against one that arrives at its owner, and gain of a second worker: real
// workers on rings that are filled before they are polled, established full-NAT flows of 64-byte UDP, IPv4.
// The results are explained in docs/performance.md.
//
//   worker 0 alone on the second CPU; worker 1 shares the first one with this program, which sleeps while the
//   workers run
//
// A worker's cycles are those of the rounds with packets (BusyTicks), so the time between batches does not
// count. A batch is complete before worker 1 can poll, and this program then sleeps for longer than the batch
// takes. If it woke earlier, worker 1 would stop and lose its cache contents, which made two workers appear
// no faster than one.
#include <rte_mbuf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/limits.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/eal.hpp"
#include "drivers/eal/host_facts.hpp"
#include "perf/harness/cycles.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/traffic/network.hpp"
#include "perf/traffic/queue_port.hpp"
#include "perf/traffic/snapshot.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kFlowsPerWorker =
    8'192;  // a batch is each flow once: their entries fit the second-level cache, unlike a busy gateway's
constexpr uint32_t kWorkersMax = 2;
// Packets per queue at once if they are handed off. Less than a handoff ring's capacity
// (limits::kHandoffRing), so that nothing is lost while an owner has no CPU.
constexpr uint32_t kHandedChunk = 1'024;
static_assert(kHandedChunk < limits::kHandoffRing && kFlowsPerWorker % kHandedChunk == 0);
// More than the 576 cycles of a packet that is handed off (docs/performance.md), at 2 GHz and faster. If a
// batch takes longer, more sleeps follow.
constexpr uint32_t kSleepNsPerPacket = 300;
constexpr uint32_t kNapUs = 100;
constexpr uint32_t kNapsMax = 50'000;
using Bytes = std::array<uint8_t, kFrameBytes>;

struct Batch {
    double cycles_a_packet = 0;      // both workers' cycles over all packets
    double packets_a_kilocycle = 0;  // of all workers together, each at its own rate
    bool whole = false;
};

class Bed {
 public:
    Bed(const drivers::Eal& eal, uint32_t workers, rte_mempool* pool, uint32_t number)
        : workers_count_(workers),
          pool_(pool),
          up_("up" + std::to_string(number), static_cast<uint16_t>(workers), kFlowsPerWorker * kWorkersMax,
              pool),
          cluster_("cl" + std::to_string(number), static_cast<uint16_t>(workers),
                   kFlowsPerWorker * kWorkersMax, pool) {
        worker::WorkerSetOptions options;
        options.connections_per_worker = 4 * kFlowsPerWorker;
        for (uint32_t w = 0; w < workers; ++w) {
            options.lcores.push_back(eal.worker_lcores()[w]);
            options.cpus.push_back(eal.worker_cpus()[w]);
        }
        const auto queues = static_cast<uint16_t>(workers);
        options.ports = {{.id = kUp,
                          .dpdk_port = up_.id(),
                          .rx_queues = queues,
                          .tx_queues = queues,
                          .flow_stays_on_queue = true,
                          .mac = kUpMac},
                         {.id = kCluster,
                          .dpdk_port = cluster_.id(),
                          .rx_queues = queues,
                          .tx_queues = queues,
                          .flow_stays_on_queue = true,
                          .mac = kClusterMac}};
        auto started =
            worker::WorkerSet::start(std::move(options), make_snapshot(lb::SourceMode::Translate, 1));
        PENSTOCK_CHECK(started.has_value());
        workers_ = std::move(*started);
        const FrameWriter writer(kRouterMac, kUpMac);
        forward_.resize(flows());
        reply_.resize(flows());
        for (uint32_t flow = 0; flow < flows(); ++flow) {
            writer.write(forward_[flow].data(), forward_tuple(flow), flow, 0, 0);
        }
        // Opens all flows, and stores the answers of their endpoints.
        PENSTOCK_CHECK(pass(up_, cluster_, forward_, false));
        cluster_.take_all([&](rte_mbuf& packet) {
            auto* frame = rte_pktmbuf_mtod(&packet, uint8_t*);
            PENSTOCK_CHECK(is_ours(frame, packet.pkt_len));
            turn_around(frame, 0);
            std::copy_n(frame, kFrameBytes, reply_[flow_of(frame)].begin());
        });
    }

    Batch forward() { return run(up_, cluster_, forward_, false); }
    // To the queue of their owner, or all to another queue.
    Batch replies(bool misplaced) { return run(cluster_, up_, reply_, misplaced); }
    [[nodiscard]] uint64_t handed_off() const { return counter(stats::Counter::HandedOff); }

 private:
    [[nodiscard]] uint32_t flows() const { return workers_count_ * kFlowsPerWorker; }
    [[nodiscard]] uint64_t counter(stats::Counter which) const {
        uint64_t sum = 0;
        for (uint8_t w = 0; w < workers_count_; ++w) {
            sum += workers_->inspect().counter({w}, which);
        }
        return sum;
    }
    // Each flow once, in chunks. Flow f belongs to worker f % workers, which received its first frame.
    [[nodiscard]] bool pass(QueuePort& in, const QueuePort& out, const std::vector<Bytes>& frames,
                            bool misplaced) {
        const uint32_t chunk = misplaced ? kHandedChunk : kFlowsPerWorker;
        for (uint32_t first = 0; first < flows(); first += chunk * workers_count_) {
            const uint32_t end = first + chunk * workers_count_;
            std::array<std::vector<rte_mbuf*>, kWorkersMax> of_queue;
            for (uint32_t flow = first; flow < end; ++flow) {
                rte_mbuf* packet = rte_pktmbuf_alloc(pool_);
                PENSTOCK_CHECK(packet != nullptr);
                std::copy(frames[flow].begin(), frames[flow].end(),
                          reinterpret_cast<uint8_t*>(rte_pktmbuf_append(packet, kFrameBytes)));
                of_queue[(flow + (misplaced ? 1 : 0)) % workers_count_].push_back(packet);
            }
            // Worker 1 cannot run before this program sleeps. Worker 0 begins at once, so its packets are
            // added last.
            for (uint16_t q = static_cast<uint16_t>(workers_count_); q-- > 0;) {
                in.preload(q, of_queue[q]);
            }
            usleep(kSleepNsPerPacket * chunk / 1'000 + kNapUs);
            for (uint32_t naps = 0; out.sent() < end; ++naps) {
                if (naps == kNapsMax) {
                    return false;
                }
                usleep(kNapUs);
            }
        }
        usleep(kNapUs);  // the last round's ticks are counted at its end
        return true;
    }
    Batch run(QueuePort& in, QueuePort& out, const std::vector<Bytes>& frames, bool misplaced) {
        std::array<uint64_t, kWorkersMax> before{};
        const auto busy = [&](uint32_t w) {
            return workers_->inspect().counter({static_cast<uint8_t>(w)}, stats::Counter::BusyTicks);
        };
        for (uint32_t w = 0; w < workers_count_; ++w) {
            before[w] = busy(w);
        }
        Batch batch{.whole = pass(in, out, frames, misplaced)};
        uint64_t all = 0;
        for (uint32_t w = 0; w < workers_count_; ++w) {
            const uint64_t spent = busy(w) - before[w];
            all += spent;
            batch.packets_a_kilocycle += 1000.0 * kFlowsPerWorker / static_cast<double>(spent);
        }
        out.take_all([](const rte_mbuf&) {});
        batch.cycles_a_packet = static_cast<double>(all) / flows();
        return batch;
    }

    uint32_t workers_count_;
    rte_mempool* pool_;
    QueuePort up_, cluster_;
    std::vector<Bytes> forward_, reply_;
    std::unique_ptr<worker::WorkerSet> workers_;  // destroyed first
};

// Batches of one kind.
class Series {
 public:
    explicit Series(std::string name) : name_(std::move(name)) {}
    void add(const Batch& batch) {
        if (batch.whole) {
            cycles_.push_back(batch.cycles_a_packet);
            rate_.push_back(batch.packets_a_kilocycle);
        }
    }
    void print() {
        PENSTOCK_CHECK(!cycles_.empty());
        std::ranges::sort(cycles_);
        std::ranges::sort(rate_);
        print_value(name_ + ".min", cycles_.front(), "cycles");
        print_value(name_ + ".median", median(), "cycles");
        print_value(name_ + ".spread", 100 * (median() - cycles_.front()) / cycles_.front(), "%");
    }
    [[nodiscard]] double min() const { return cycles_.front(); }
    [[nodiscard]] double median() const { return cycles_[cycles_.size() / 2]; }
    [[nodiscard]] double best_rate() const { return rate_.back(); }
    [[nodiscard]] double median_rate() const { return rate_[rate_.size() / 2]; }

 private:
    std::string name_;
    std::vector<double> cycles_, rate_;
};

int measure(const Options& options) {
    const std::vector<unsigned> cpus = drivers::allowed_cpus();
    if (cpus.size() < 2) {
        print_remark("one CPU: nothing can be said of two workers");
        return 0;
    }
    auto eal = drivers::Eal::start({.worker_cpus = {cpus[1], cpus[0]},
                                    .main_cpu = cpus[0],
                                    .memory_mb = 512,
                                    .pci_allow = {},
                                    .file_prefix = "penstock-steering",
                                    .extra_args = {},
                                    .sink = {}});
    if (!eal) {
        std::cerr << "steering: " << eal.error().what << "\n";
        return 1;
    }
    print_fingerprint();
    print_remark("worker 0 has CPU " + std::to_string(cpus[1]) + " for itself; worker 1 shares CPU " +
                 std::to_string(cpus[0]) +
                 " with the bench, which sleeps meanwhile; all share the last-level cache and the mempool");
    rte_mempool* const pool =
        rte_pktmbuf_pool_create("steering", 65'535, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    PENSTOCK_CHECK(pool != nullptr);
    Series forward1("rings.workers1.forward"), reply1("rings.workers1.reply"),
        forward2("rings.workers2.forward"), reply2("rings.workers2.reply"),
        handed2("rings.workers2.reply_handed_off");
    const uint32_t rounds = options.quick ? 3 : options.plan.windows;
    constexpr uint32_t kBatches = 10;
    // One worker and two alternately, so that a disturbance affects both.
    for (uint32_t round = 0, number = 0; round < rounds; ++round) {
        {
            Bed one(**eal, 1, pool, number++);
            for (uint32_t i = 0; i < kBatches; ++i) {
                forward1.add(one.forward());
                reply1.add(one.replies(false));
            }
        }
        Bed two(**eal, 2, pool, number++);
        for (uint32_t i = 0; i < kBatches; ++i) {
            forward2.add(two.forward());
            reply2.add(two.replies(false));
        }
        PENSTOCK_CHECK(two.handed_off() == 0);
        for (uint32_t i = 0; i < kBatches; ++i) {
            handed2.add(two.replies(true));
        }
        PENSTOCK_CHECK(two.handed_off() == uint64_t{kBatches} * 2 * kFlowsPerWorker);
    }
    for (Series* series : {&forward1, &reply1, &forward2, &reply2, &handed2}) {
        series->print();
    }
    print_value("rings.handoff.added", handed2.min() - reply2.min(), "cycles");
    print_value("rings.handoff.to_home", handed2.min() / reply2.min(), "ratio");
    print_value("rings.handoff.to_home.median", handed2.median() / reply2.median(), "ratio");
    for (const auto& [name, one, two] : {std::tuple{"forward", &forward1, &forward2},
                                         {"reply", &reply1, &reply2},
                                         {"handed_off", &reply1, &handed2}}) {
        print_value(std::string("rings.scaling.") + name, two->best_rate() / one->best_rate(), "ratio");
        print_value(std::string("rings.scaling.") + name + ".median", two->median_rate() / one->median_rate(),
                    "ratio");
    }
    return 0;
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    return measure(read_options(argc, argv, {}, {}, {}));
}
