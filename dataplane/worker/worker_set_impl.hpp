// SPDX-License-Identifier: Apache-2.0
// The implementation of WorkerSet: workers, their memory, and the rings between them. For the units of
// WorkerSet, which change it on its thread, and for those behind Inspector (inspect, explain, affinity_view,
// latencies), which only read it. Tests use it to reach the contexts of stopped workers.
#pragma once

#include <rte_cycles.h>
#include <rte_malloc.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/tsc_measure.hpp"
#include "dataplane/lb/affinity.hpp"
#include "dataplane/lb/scheduler.hpp"
#include "dataplane/pipeline/tap.hpp"
#include "dataplane/worker/host_tap.hpp"
#include "dataplane/worker/worker.hpp"
#include "dataplane/worker/worker_set.hpp"

struct rte_ring;

namespace penstock::worker {

// Zeroed pages of the kernel, allocated only when they are written: rows for a million backends cost only as
// much as the backends in use.
class ZeroPages {
 public:
    explicit ZeroPages(size_t bytes);
    ~ZeroPages();
    ZeroPages(const ZeroPages&) = delete;
    ZeroPages& operator=(const ZeroPages&) = delete;
    // All-zero bytes are a valid value of every T used here (numbers and atomics of numbers).
    template <typename T>
    [[nodiscard]] std::span<T> as() const noexcept {
        PENSTOCK_CHECK(memory_ != nullptr);
        return {reinterpret_cast<T*>(memory_), bytes_ / sizeof(T)};
    }

 private:
    std::byte* memory_ = nullptr;
    size_t bytes_ = 0;
};

inline TscMeasure::Reading read_clocks() {
    return {rte_get_tsc_cycles(), std::chrono::steady_clock::now().time_since_epoch()};
}

struct RteFree {
    void operator()(std::byte* memory) const noexcept { rte_free(memory); }
};

// All memory of one worker. Outlives the worker; read by Inspector.
struct WorkerMemory {
    std::unique_ptr<std::byte, RteFree> table;
    std::unique_ptr<std::byte, RteFree> snat_ports;
    std::unique_ptr<std::byte, RteFree> backend_links;
    std::span<std::byte> table_span;
    std::span<std::byte> snat_ports_span;
    std::span<conn::BackendLink> backend_links_span;
    ZeroPages backend_heads{limits::kBackendsMax * sizeof(uint32_t)};
    ZeroPages cursors{lb::SchedulerState::kCursors * sizeof(uint32_t)};
    ZeroPages neighbour_use{limits::kNeighboursMax * sizeof(std::atomic<uint32_t>)};
    ZeroPages worker_counters{sizeof(stats::WorkerCounters)};
    ZeroPages service_counters{limits::kServicesMax * sizeof(stats::ServiceCounters)};
    ZeroPages backend_counters{limits::kBackendsMax * sizeof(stats::BackendCounters)};
    pipeline::ResolveQueue resolve;
    // Only with flow records.
    std::unique_ptr<std::byte, RteFree> flows;
    std::unique_ptr<pipeline::FlowRecordQueue> flow_queue;
    std::unique_ptr<pipeline::FlowLog> flow_log;
    // Only with latencies, the third only with those of backends.
    std::unique_ptr<std::byte, RteFree> latency_waits;
    std::unique_ptr<ZeroPages> service_latencies;
    std::unique_ptr<ZeroPages> backend_latencies;
    std::unique_ptr<pipeline::LatencyMeter> latency;
};

struct WorkerSet::Impl {
    ~Impl();
    Status take_rings();
    Status take_own_buffers();
    Status take_affinity();
    Status make_reply_rules();
    Result<std::unique_ptr<WorkerMemory>> take_memory(uint32_t worker) const;
    Status take_flow_log(uint32_t worker, WorkerMemory& kept) const;
    Status take_latency_meter(uint32_t worker, WorkerMemory& kept) const;
    Status add_worker(uint32_t index);
    [[nodiscard]] std::unique_ptr<Worker> make_worker(std::unique_ptr<pipeline::WorkerContext> context,
                                                      uint32_t index) const;
    void add_bfd();
    void adopt_former();
    [[nodiscard]] pipeline::WorkerIo io_of(uint32_t worker) const;
    void stop();

    WorkerSetOptions options;
    nat::ReplyRules reply_rules;
    std::unique_ptr<config::Publisher> publisher;
    DetachedPorts detached;
    std::vector<rte_ring*> rings;  // all of them, for destruction
    std::vector<rte_ring*> handoff;
    rte_mempool* own_buffers = nullptr;
    std::array<std::array<rte_ring*, kPuntClasses>, limits::kNicPortsMax> to_host_{};
    std::array<rte_ring*, limits::kNicPortsMax> from_host_{};
    std::array<std::vector<rte_ring*>, limits::kNicPortsMax> tx_through_;
    std::unique_ptr<std::byte, RteFree> affinity_memory;
    lb::AffinityTable affinity;
    uint32_t affinity_swept = 0;  // buckets processed in this pass of sweep_affinity()
    std::vector<std::unique_ptr<WorkerMemory>> memory;
    // of `memory`, as schedulers read them
    std::array<const stats::BackendCounters*, limits::kWorkersMax> backend_rows_{};
    pipeline::MovedFlows moved_flows;                // used by the workers if it is not empty
    std::vector<pipeline::WorkerContext*> contexts;  // of the workers, for adopt_former() only
    std::vector<std::unique_ptr<Worker>> workers_;
    std::unique_ptr<bfd::Engine> bfd;  // null: off
    adopt::Report adopted;
    uint32_t running = 0;
    // Of a capture that has ended while a worker was stopped (capture.hpp).
    struct FormerTaps {
        config::Publisher::Moment unused_after{};
        std::vector<std::unique_ptr<pipeline::Tap>> taps;
    };
    std::optional<FormerTaps> former_taps;
    bool is_captured = false;
    uint32_t captures = 0;           // begun since start
    uint32_t next_flow_records = 0;  // the worker that take_flow_records() begins with
    TscMeasure tsc{read_clocks(), TscRate{rte_get_tsc_hz()}};
    // Frames dropped on the twin thread: they belong to no worker and are counted with those of worker 0.
    std::array<stats::Tally, kDropReasons> host_drops;
    // Of a capture; guarded by the mutex. Null: none runs. The twin I/O thread takes the mutex for frames
    // that it drops only.
    std::mutex host_tap_mutex;
    HostTap* host_tap = nullptr;
    // The subset of them that came from Linux: no worker has counted these as Counter::FromHost.
    stats::Tally host_frames_lost;
};

}  // namespace penstock::worker
