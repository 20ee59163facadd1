// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/worker_set.hpp"

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sys/mman.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <tuple>

#include "dataplane/bfd/frame.hpp"
#include "dataplane/worker/table_memory.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {
namespace {

// The ring holds exactly `packets`: the buffer pools are sized by the same limits (drivers/eal/mempool.cpp).
Result<rte_ring*> make_ring(const std::string& name, uint32_t packets, unsigned flags) {
    rte_ring* ring =
        rte_ring_create(name.c_str(), packets, static_cast<int>(rte_socket_id()), flags | RING_F_EXACT_SZ);
    if (ring == nullptr) {
        return fail(Errc::Exhausted, "cannot create ring " + name + " of " + std::to_string(packets) +
                                         " packets: " + rte_strerror(rte_errno));
    }
    return ring;
}

void drain(rte_ring* ring) {
    void* packet = nullptr;
    while (rte_ring_dequeue(ring, &packet) == 0) {
        rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    }
}

}  // namespace

ZeroPages::ZeroPages(size_t bytes) : bytes_(bytes) {
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}
ZeroPages::~ZeroPages() {
    if (memory_ != nullptr) {
        munmap(memory_, bytes_);
    }
}

Status WorkerSet::Impl::take_rings() {
    const auto keep = [&](const std::string& name, uint32_t packets, unsigned flags) -> Result<rte_ring*> {
        Result<rte_ring*> ring = make_ring(name, packets, flags);
        if (ring) {
            rings.push_back(*ring);
        }
        return ring;
    };
    const uint32_t workers = static_cast<uint32_t>(options.lcores.size());
    for (uint32_t w = 0; workers > 1 && w < workers; ++w) {
        PENSTOCK_TRY(const auto ring,
                     keep("handoff_" + std::to_string(w), limits::kHandoffRing, RING_F_SC_DEQ));
        handoff.push_back(ring);
    }
    for (const PortPlan& port : options.ports) {
        const std::string suffix = std::to_string(port.id.value);
        constexpr std::array<uint32_t, kPuntClasses> kRings{limits::kPuntLinkRing, limits::kPuntRoutingRing,
                                                            limits::kPuntRing};
        for (size_t punt_class = 0; punt_class < kPuntClasses; ++punt_class) {
            PENSTOCK_TRY(to_host_[port.id.value][punt_class],
                         keep("to_host_" + suffix + "_" + std::to_string(punt_class), kRings[punt_class],
                              RING_F_SC_DEQ));
        }
        PENSTOCK_TRY(from_host_[port.id.value],
                     keep("from_host_" + suffix, limits::kPuntRing, RING_F_SP_ENQ | RING_F_SC_DEQ));
        for (uint32_t q = 0; q < port.tx_queues && port.tx_queues < workers; ++q) {
            PENSTOCK_TRY(const auto through, keep("tx_through_" + suffix + "_" + std::to_string(q),
                                                  limits::kHandoffRing, RING_F_SC_DEQ));
            tx_through_[port.id.value].push_back(through);
        }
    }
    return {};
}

// A separate pool, so that segments can be sent even if queues hold all packet buffers. Shared by all worker
// sets of the process, one after the other, and never freed: a NIC's queue may still hold some buffers after
// its workers have ended.
Status WorkerSet::Impl::take_own_buffers() {
    constexpr const char* kName = "own_segments";
    constexpr unsigned kCache = 64;
    own_buffers = rte_mempool_lookup(kName);
    if (own_buffers == nullptr) {
        own_buffers = rte_pktmbuf_pool_create(
            kName, limits::kOwnSegmentBuffers, kCache, 0,
            RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(std::max(packet::kBareSegmentBytesMax, bfd::kFrameBytesMax),
                                                  RTE_CACHE_LINE_SIZE),
            static_cast<int>(rte_socket_id()));
    }
    if (own_buffers == nullptr) {
        return fail(Errc::Exhausted, "cannot allocate buffers for " +
                                         std::to_string(limits::kOwnSegmentBuffers) +
                                         " segments: " + rte_strerror(rte_errno));
    }
    return {};
}

Status WorkerSet::Impl::take_affinity() {
    PENSTOCK_TRY(const auto taken, take_table(options.table_memory, "affinity", "affinity table",
                                              lb::AffinityTable::memory_needed(options.affinity_entries),
                                              options.lcores.front(), "--affinity-entries", affinity_memory));
    PENSTOCK_TRY(affinity, lb::AffinityTable::create(taken, options.affinity_entries, HashKey::random()));
    return {};
}

// A single worker receives all packets, whatever RSS does, so it needs no rules.
Status WorkerSet::Impl::make_reply_rules() {
    std::vector<nat::PortReplyHash> hashes;
    for (const PortPlan& port : options.ports) {
        if (port.reply_hash && options.lcores.size() > 1) {
            hashes.push_back({port.id, &*port.reply_hash});
        }
    }
    PENSTOCK_TRY(reply_rules, nat::ReplyRules::create(hashes, static_cast<uint32_t>(options.lcores.size())));
    return {};
}

pipeline::WorkerIo WorkerSet::Impl::io_of(uint32_t worker) const {
    const auto workers = static_cast<uint16_t>(options.lcores.size());
    pipeline::WorkerIo io;
    io.burst = static_cast<uint16_t>(options.burst);
    io.own_buffers = own_buffers;
    for (uint32_t w = 0; w < handoff.size(); ++w) {
        (w == worker ? io.handoff_in : io.handoff_to[w]) = handoff[w];
    }
    for (const PortPlan& plan : options.ports) {
        pipeline::PortIo& port = io.port[plan.id.value];
        io.ports = std::max(io.ports, uint32_t{plan.id.value} + 1);
        port.id = plan.id;
        port.used = true;
        port.dpdk_port = plan.dpdk_port;
        port.rx_checksum_checked = plan.rx_checksum_checked;
        port.rx_interrupts = plan.rx_interrupts;
        port.first_rx_queue = static_cast<uint16_t>(worker);
        port.rx_queue_step = workers;
        port.rx_queues = plan.rx_queues;
        port.tx_queue = static_cast<uint16_t>(worker);
        const std::vector<rte_ring*>& through = tx_through_[plan.id.value];
        if (!through.empty()) {
            if (worker < plan.tx_queues) {
                port.tx_for_others = through[worker];
            } else {
                port.tx_through = through[worker % plan.tx_queues];
            }
        }
        port.to_host = to_host_[plan.id.value];
        // Each twin is served by one worker, always one with a transmit queue. Ports are spread over the
        // workers so that not all are served by worker 0.
        const uint32_t senders = std::min<uint32_t>(workers, plan.tx_queues);
        port.from_host = worker == plan.id.value % senders ? from_host_[plan.id.value] : nullptr;
    }
    return io;
}

Result<std::unique_ptr<WorkerMemory>> WorkerSet::Impl::take_memory(uint32_t worker) const {
    const std::string suffix = std::to_string(worker);
    auto memory = std::make_unique<WorkerMemory>();
    PENSTOCK_TRY(const auto table,
                 take_table(options.table_memory, "connections-" + suffix, "connection table " + suffix,
                            conn::Table::memory_needed(options.connections_per_worker),
                            options.lcores[worker], "--connections", memory->table));
    PENSTOCK_TRY(const auto ports, take_huge("SNAT ports " + suffix,
                                             nat::PortProposer::memory_needed(
                                                 options.connections_per_worker, options.snat_ports,
                                                 static_cast<uint32_t>(options.lcores.size()), &reply_rules),
                                             options.lcores[worker]));
    memory->snat_ports.reset(ports.data());
    PENSTOCK_TRY(const auto links, take_huge("flows by endpoint " + suffix,
                                             options.connections_per_worker * sizeof(conn::BackendLink),
                                             options.lcores[worker]));
    memory->backend_links.reset(links.data());
    memory->backend_links_span = {reinterpret_cast<conn::BackendLink*>(links.data()),
                                  options.connections_per_worker};
    memory->table_span = table;
    memory->snat_ports_span = ports;
    return memory;
}

Status WorkerSet::Impl::add_worker(uint32_t index) {
    const auto workers = static_cast<uint32_t>(options.lcores.size());
    const WorkerId self{static_cast<uint8_t>(index)};
    PENSTOCK_TRY(auto taken, take_memory(index));
    WorkerMemory& kept = *memory.emplace_back(std::move(taken));

    PENSTOCK_TRY(auto table,
                 conn::Table::create(kept.table_span, options.connections_per_worker, HashKey::random()));
    PENSTOCK_TRY(auto snat_ports, nat::PortProposer::create(
                                      kept.snat_ports_span, options.connections_per_worker,
                                      options.snat_ports, self, workers, HashKey::random(), &reply_rules));
    if (options.flow_records) {
        PENSTOCK_TRY_STATUS(take_flow_log(index, kept));
    }
    if (options.latencies != Latencies::Off) {
        PENSTOCK_TRY_STATUS(take_latency_meter(index, kept));
    }
    backend_rows_[index] = kept.backend_counters.as<stats::BackendCounters>().data();
    const TscRate rate{rte_get_tsc_hz()};
    std::unique_ptr<pipeline::WorkerContext> context(new pipeline::WorkerContext{
        .self = self,
        .workers = workers,
        .rate = rate,
        .owner = {.workers = workers,
                  .secret = options.secret,
                  .rules = reply_rules.empty() ? nullptr : &reply_rules},
        .connections = std::move(table),
        .by_backend = conn::BackendIndex(kept.backend_links_span, kept.backend_heads.as<uint32_t>()),
        .aging = conn::Aging(conn::Limits(conn::Timeouts{}, rate)),
        .snat_ports = std::move(snat_ports),
        .schedulers = lb::SchedulerState(kept.cursors.as<uint32_t>(), HashKey::random().k0,
                                         lb::BackendRows(backend_rows_).first(workers)),
        .pending = route::PendingPackets<rte_mbuf*>(rate),
        .neighbour_use = route::NeighbourUse(kept.neighbour_use.as<std::atomic<route::UseSeconds>>()),
        .rejects = pipeline::RejectLimiter(limits::kRejectsPerSecond, limits::kRejectsBurst, rate),
        .affinity = affinity,
        .counters = {kept.worker_counters.as<stats::WorkerCounters>().data(),
                     kept.service_counters.as<stats::ServiceCounters>(),
                     kept.backend_counters.as<stats::BackendCounters>()},
        .resolve = &kept.resolve,
        .flow_log = kept.flow_log.get(),
        .latency = kept.latency.get(),
        .copies = options.copies,
    });
    contexts.push_back(context.get());
    workers_.push_back(make_worker(std::move(context), index));
    return {};
}

std::unique_ptr<Worker> WorkerSet::Impl::make_worker(std::unique_ptr<pipeline::WorkerContext> context,
                                                     uint32_t index) const {
    for (const PortPlan& port : options.ports) {
        context->ports[port.id.value] = {port.mac, {port.flow_stays_on_queue, port.snat_blocks_on_queue}};
    }
    // An idle worker yields if another worker, or the main lcore, runs on its CPU.
    const unsigned cpu = options.cpus[index];
    const bool shares_cpu =
        std::count(options.cpus.begin(), options.cpus.end(), cpu) > 1 ||
        cpu == static_cast<unsigned>(rte_lcore_to_cpu_id(static_cast<int>(rte_get_main_lcore())));
    return std::make_unique<Worker>(std::move(context), io_of(index), *publisher, detached,
                                    Worker::Manner{.shares_cpu = shares_cpu, .idle = options.idle});
}

WorkerSet::WorkerSet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<WorkerSet>> WorkerSet::start(WorkerSetOptions options,
                                                    std::unique_ptr<config::Snapshot> initial) {
    auto former = std::exchange(options.former, std::nullopt);
    const auto before_launch = std::exchange(options.before_launch, nullptr);
    PENSTOCK_TRY(auto prepared, prepare(std::move(options), std::move(initial)));
    PENSTOCK_TRY_STATUS(prepared->launch(std::move(former), before_launch));
    return prepared;
}

Result<std::unique_ptr<WorkerSet>> WorkerSet::prepare(WorkerSetOptions options,
                                                      std::unique_ptr<config::Snapshot> initial) {
    if (options.lcores.empty() || options.lcores.size() > limits::kWorkersMax ||
        options.lcores.size() != options.cpus.size()) {
        return fail(Errc::InvalidArgument, "there must be 1 to " + std::to_string(limits::kWorkersMax) +
                                               " workers, each with its CPU");
    }
    auto impl = std::make_unique<Impl>();
    impl->options = std::move(options);
    // An even number: in a table with an odd one, an IPv6 connection that evicted an IPv4 one could still
    // lack the last unit.
    impl->options.connections_per_worker += impl->options.connections_per_worker % 2;
    const auto workers = static_cast<uint32_t>(impl->options.lcores.size());
    PENSTOCK_TRY(impl->publisher, config::Publisher::create(workers, std::move(initial)));
    PENSTOCK_TRY_STATUS(impl->take_rings());
    PENSTOCK_TRY_STATUS(impl->take_own_buffers());
    PENSTOCK_TRY_STATUS(impl->take_affinity());
    PENSTOCK_TRY_STATUS(impl->make_reply_rules());
    for (uint32_t w = 0; w < workers; ++w) {
        PENSTOCK_TRY_STATUS_IN("worker " + std::to_string(w), impl->add_worker(w));
    }
    impl->add_bfd();
    return std::unique_ptr<WorkerSet>(new WorkerSet(std::move(impl)));
}

bool WorkerSet::fits(std::span<const PortPlan> ports) const {
    const auto laid_out = [](const PortPlan& port) {
        return std::tie(port.id, port.rx_queues, port.tx_queues, port.reply_hash);
    };
    return std::ranges::equal(ports, impl_->options.ports, {}, laid_out, laid_out);
}

Status WorkerSet::set_ports(std::vector<PortPlan> ports) {
    if (!fits(ports)) {
        return fail(Errc::Internal, "a port differs from what it was before its start");
    }
    impl_->options.ports = std::move(ports);
    for (uint32_t w = 0; w < impl_->workers_.size(); ++w) {
        impl_->workers_[w] = impl_->make_worker(impl_->workers_[w]->release_context(), w);
    }
    return {};
}

Status WorkerSet::launch(std::optional<adopt::FormerTables> former,
                         const std::function<void(const adopt::Report& report)>& before_launch) {
    impl_->options.former = std::move(former);
    impl_->adopt_former();
    if (before_launch) {
        before_launch(impl_->adopted);
    }
    for (uint32_t w = 0; w < impl_->workers_.size(); ++w) {
        const unsigned lcore = impl_->options.lcores[w];
        const int launched = rte_eal_remote_launch(
            [](void* worker) {
                static_cast<Worker*>(worker)->run();
                return 0;
            },
            impl_->workers_[w].get(), lcore);
        if (launched != 0) {
            return fail(Errc::Internal,
                        "lcore " + std::to_string(lcore) + " is busy: " + rte_strerror(-launched));
        }
        impl_->running = w + 1;
    }
    return {};
}

WorkerSet::~WorkerSet() {
    stop();
}

void WorkerSet::stop() {
    impl_->stop();
}

void WorkerSet::Impl::stop() {
    for (const auto& worker : workers_) {
        worker->stop();
    }
    for (uint32_t w = 0; w < running; ++w) {
        rte_eal_wait_lcore(options.lcores[w]);
    }
    for (uint32_t w = 0; w < running; ++w) {
        workers_[w]->free_held_packets();
    }
    running = 0;
    for (rte_ring* ring : rings) {
        drain(ring);
    }
}

WorkerSet::Impl::~Impl() {
    stop();
    workers_.clear();
    for (rte_ring* ring : rings) {
        rte_ring_free(ring);
    }
}

std::vector<WorkerId> WorkerSet::publish(std::unique_ptr<config::Snapshot> next) {
    return impl_->publisher->publish(std::move(next));
}

void WorkerSet::reclaim() {
    impl_->publisher->reclaim();
}

config::Snapshot WorkerSet::current() const {
    return impl_->publisher->current();
}

config::Publisher::Moment WorkerSet::detach(NicPortId port) {
    impl_->detached.detach(port);
    return impl_->publisher->now();
}

bool WorkerSet::has_passed(config::Publisher::Moment moment) const {
    return impl_->publisher->has_passed(moment);
}

uint64_t WorkerSet::flow_orders_done() const {
    const auto done = [](const auto& worker) { return worker->context().flow_orders.done(); };
    return std::ranges::min(impl_->workers_ | std::views::transform(done));
}

const adopt::Report& WorkerSet::adopted() const {
    return impl_->adopted;
}

}  // namespace penstock::worker
