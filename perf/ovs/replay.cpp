// SPDX-License-Identifier: Apache-2.0
// Penstock's side of scripts/bench ovs: one real worker between two DPDK devices with the device strings of
// OVS, DNAT without SNAT, one endpoint per Service. Reads commands from standard input and answers each by
// one line of JSON.
//
//   replay MAIN_CPU WORKER_CPU MEMORY_MB CONNECTIONS MBUFS CLIENTS_DEVICE CLUSTER_DEVICE
//
//   totals            the worker's counts so far
//   window SECONDS    the worker's counts in that time
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/eal.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/traffic/network.hpp"
#include "perf/traffic/snapshot.hpp"

namespace penstock::perf {
namespace {

constexpr uint16_t kDescriptors = 1024;

struct Totals {
    uint64_t received = 0, sent = 0, busy_ticks = 0, new_connections = 0;
};

Totals read(const worker::WorkerSet& workers) {
    const worker::Inspector inspect = workers.inspect();
    const auto count = [&](stats::Counter counter) { return inspect.counter({0}, counter); };
    return {count(stats::Counter::RxPackets), count(stats::Counter::TxPackets),
            count(stats::Counter::BusyTicks), count(stats::Counter::NewConnections)};
}

void print(const Totals& before, const Totals& after, uint32_t connections) {
    std::printf("{\"received\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"busy_ticks\": %" PRIu64
                ", \"new\": %" PRIu64 ", \"connections\": %u}\n",
                after.received - before.received, after.sent - before.sent,
                after.busy_ticks - before.busy_ticks, after.new_connections - before.new_connections,
                connections);
    std::fflush(stdout);
}

bool start_port(uint16_t port, rte_mempool* pool) {
    const rte_eth_conf conf{};
    return rte_eth_dev_configure(port, 1, 1, &conf) == 0 &&
           rte_eth_rx_queue_setup(port, 0, kDescriptors, 0, nullptr, pool) == 0 &&
           rte_eth_tx_queue_setup(port, 0, kDescriptors, 0, nullptr) == 0 && rte_eth_dev_start(port) == 0;
}

int obey(const worker::WorkerSet& workers) {
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string verb;
        double seconds = 0;
        words >> verb;
        Totals before;
        if (verb == "window" && words >> seconds) {
            before = read(workers);
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        } else if (verb != "totals") {
            std::cerr << "replay: not a command: " << line << "\n";
            return 2;
        }
        print(before, read(workers), workers.inspect().worker({0}).connections);
    }
    return 0;
}

int run(char** argument) {
    const auto number = [&](int at) {
        return static_cast<unsigned>(std::strtoul(argument[at], nullptr, 10));
    };
    const std::array<std::string, 2> devices{argument[6], argument[7]};
    auto eal = drivers::Eal::start({.worker_cpus = {number(2)},
                                    .main_cpu = number(1),
                                    .memory_mb = number(3),
                                    .pci_allow = {},
                                    .file_prefix = "penstock-replay",
                                    .extra_args = {"--vdev=" + devices[0], "--vdev=" + devices[1]},
                                    .sink = {}});
    if (!eal) {
        std::cerr << "replay: " << eal.error().what << "\n";
        return 1;
    }
    if (!(*eal)->has_hugepages()) {
        std::cerr << "replay: " << (*eal)->memory_description() << "\n";  // OVS has them
        return 1;
    }
    rte_mempool* const pool =
        rte_pktmbuf_pool_create("replay", number(5), 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (pool == nullptr) {
        std::cerr << "replay: no memory for packets\n";
        return 1;
    }
    worker::WorkerSetOptions options{.lcores = (*eal)->worker_lcores(),
                                     .cpus = (*eal)->worker_cpus(),
                                     .connections_per_worker = number(4),
                                     .ports = {}};
    for (uint8_t i = 0; i < devices.size(); ++i) {
        uint16_t port = 0;
        if (rte_eth_dev_get_port_by_name(devices[i].substr(0, devices[i].find(',')).c_str(), &port) != 0 ||
            !start_port(port, pool)) {
            std::cerr << "replay: " << devices[i] << " does not start\n";
            return 1;
        }
        options.ports.push_back({.id = {i}, .dpdk_port = port, .mac = i == 0 ? kUpMac : kClusterMac});
    }
    const std::vector<worker::PortPlan> ports = options.ports;
    int result = 0;
    {
        auto workers = worker::WorkerSet::start(std::move(options), make_snapshot(lb::SourceMode::Keep, 1));
        if (!workers) {
            std::cerr << "replay: " << workers.error().what << "\n";
            return 1;
        }
        print_fingerprint();
        std::printf("{\"ready\": true}\n");
        std::fflush(stdout);
        result = obey(**workers);
    }
    for (const worker::PortPlan& port : ports) {
        rte_eth_dev_stop(port.dpdk_port);
        rte_eth_dev_close(port.dpdk_port);
    }
    rte_mempool_free(pool);
    return result;
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    if (argc != 8) {
        std::cerr << "usage: replay MAIN_CPU WORKER_CPU MEMORY_MB CONNECTIONS MBUFS CLIENTS_DEVICE "
                     "CLUSTER_DEVICE; scripts/bench ovs starts it\n";
        return 2;
    }
    return penstock::perf::run(argv);
}
