// SPDX-License-Identifier: Apache-2.0
// Cost of an idle worker, and cost of its sleep for a packet: polling against adaptive in one run, on
// net_ring ports. A packet is put into one port's ring after a silence of known length and taken from the
// other's. The time between, by the sender's TSC, is the worker's wake-up and its work. The rings have no
// interrupts, so sleeps end by timeout: the slower of the two ways.
#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/eal.hpp"
#include "drivers/eal/host_facts.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/report.hpp"
#include "perf/quiet/ring_wire.hpp"
#include "perf/traffic/network.hpp"
#include "perf/traffic/snapshot.hpp"

namespace penstock::perf {
namespace {

struct Gap {
    const char* name;
    uint64_t us;
};
// Gaps of a conversation across a rack, between two requests, and of an idle gateway at night.
constexpr std::array kGaps{Gap{"100us", 100}, Gap{"2ms", 2'000}, Gap{"50ms", 50'000}};

struct Latencies {
    double median_us = 0, p99_us = 0;
    uint64_t lost = 0;
};

uint64_t ticks_of_us(uint64_t us) {
    return rte_get_tsc_hz() * us / 1'000'000;
}

void wait_until(uint64_t tsc) {
    constexpr uint64_t kSpinUs = 1'000;  // the end is spun, so that it is exact
    const uint64_t now = rte_rdtsc();
    if (tsc > now + ticks_of_us(kSpinUs)) {
        std::this_thread::sleep_for(
            std::chrono::microseconds((tsc - now) * 1'000'000 / rte_get_tsc_hz() - kSpinUs));
    }
    while (rte_rdtsc() < tsc) {
    }
}

Latencies measure(const RingWire& up, const RingWire& cluster, rte_mempool* pool, uint64_t gap_us,
                  uint32_t samples) {
    const FrameWriter writer(kRouterMac, kUpMac);
    std::vector<double> us;
    Latencies out;
    uint64_t due = rte_rdtsc();
    for (uint32_t i = 0; i < samples; ++i) {
        // The gap varies by a quarter in either direction, so that it is not in step with the sleeps or other
        // periods.
        due = std::max(due, rte_rdtsc()) +
              ticks_of_us(gap_us * 3 / 4 + gap_us / 2 * (i * 2'654'435'761U >> 16) / 65'536);
        rte_mbuf* packet = rte_pktmbuf_alloc(pool);
        PENSTOCK_CHECK(packet != nullptr);
        writer.write(reinterpret_cast<uint8_t*>(rte_pktmbuf_append(packet, kFrameBytes)),
                     forward_tuple(i % 16), i % 16, 1, 0);
        wait_until(due);
        const uint64_t sent = rte_rdtsc();
        PENSTOCK_CHECK(rte_eth_tx_burst(up.other_end(), 0, &packet, 1) == 1);
        rte_mbuf* arrived = nullptr;
        const uint64_t give_up = sent + rte_get_tsc_hz();
        while (rte_eth_rx_burst(cluster.other_end(), 0, &arrived, 1) == 0 && rte_rdtsc() < give_up) {
        }
        const uint64_t taken = rte_rdtsc();
        if (arrived == nullptr) {
            ++out.lost;
            continue;
        }
        rte_pktmbuf_free(arrived);
        us.push_back(static_cast<double>(taken - sent) * 1e6 / static_cast<double>(rte_get_tsc_hz()));
        due = taken;
    }
    if (!us.empty()) {
        std::sort(us.begin(), us.end());
        out.median_us = us[us.size() / 2];
        out.p99_us = us[us.size() * 99 / 100];
    }
    return out;
}

double process_cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// CPU time of the process while no packet arrives and this thread sleeps: the worker's.
double idle_share(double seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double before = process_cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    return (process_cpu_seconds() - before) /
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Result {
    double cpu_share = 0;
    std::array<Latencies, kGaps.size()> latencies;
};

Result run(const drivers::Eal& eal, rte_mempool* pool, worker::IdleMode mode, bool quick) {
    static int runs = 0;
    const std::string suffix = std::to_string(runs++);
    const RingWire up("up" + suffix, pool), cluster("cl" + suffix, pool);
    worker::WorkerSetOptions options{
        .lcores = eal.worker_lcores(), .cpus = eal.worker_cpus(), .ports = {}, .idle = mode};
    options.ports = {{.id = kUp, .dpdk_port = up.gateway_end(), .mac = kUpMac},
                     {.id = kCluster, .dpdk_port = cluster.gateway_end(), .mac = kClusterMac}};
    const auto workers = worker::WorkerSet::start(
        std::move(options), make_snapshot(lb::SourceMode::Translate, kEndpointsPerService));
    if (!workers) {
        std::cerr << "idle: " << workers.error().what << "\n";
        std::exit(1);
    }
    Result result;
    measure(up, cluster, pool, 100, 200);  // warm-up: connections are set up, functions resolved
    result.cpu_share = idle_share(quick ? 1 : 5);
    for (size_t i = 0; i < kGaps.size(); ++i) {
        const uint64_t seconds = quick ? 1 : 5;
        const auto samples =
            static_cast<uint32_t>(std::clamp<uint64_t>(seconds * 1'000'000 / kGaps[i].us, 20, 20'000));
        result.latencies[i] = measure(up, cluster, pool, kGaps[i].us, samples);
    }
    return result;
}

int measure_both(bool quick) {
    const std::vector<unsigned> cpus = drivers::allowed_cpus();
    if (cpus.size() < 2) {
        print_remark("one CPU: sender and worker would wait for each other; not measured");
        return 0;
    }
    auto eal =
        drivers::Eal::start({.worker_cpus = {cpus[1]}, .main_cpu = cpus[0], .memory_mb = 512, .sink = {}});
    if (!eal) {
        std::cerr << "idle: " << eal.error().what << "\n";
        return 1;
    }
    print_fingerprint();
    rte_mempool* pool =
        rte_pktmbuf_pool_create("idle", 16'383, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    PENSTOCK_CHECK(pool != nullptr);
    const Result polling = run(**eal, pool, worker::IdleMode::Poll, quick);
    const Result adaptive = run(**eal, pool, worker::IdleMode::Adaptive, quick);
    rte_mempool_free(pool);

    print_value("idle_cpu.poll", polling.cpu_share * 100, "percent");
    print_value("idle_cpu.adaptive", adaptive.cpu_share * 100, "percent");
    uint64_t lost = 0;
    for (size_t i = 0; i < kGaps.size(); ++i) {
        const Latencies &a = polling.latencies[i], &b = adaptive.latencies[i];
        const std::string after = std::string("idle_latency.after_") + kGaps[i].name;
        print_value(after + ".poll.median", a.median_us, "us");
        print_value(after + ".poll.p99", a.p99_us, "us");
        print_value(after + ".adaptive.median", b.median_us, "us");
        print_value(after + ".adaptive.p99", b.p99_us, "us");
        print_value(after + ".added.median", b.median_us - a.median_us, "us");
        lost += a.lost + b.lost;
    }
    print_value("idle_lost", static_cast<double>(lost), "packets");
    if (polling.cpu_share > 0.9) {
        print_gate_at_most("idle_cpu_ratio", adaptive.cpu_share / polling.cpu_share, 0.25);
    } else {
        print_remark("the polling worker did not get its CPU: no gate for the ratio of shares");
    }
    print_gate_at_most("idle_lost", static_cast<double>(lost), 0);
    return 0;
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    return penstock::perf::measure_both(argc > 1 && std::string_view(argv[1]) == "--quick");
}
