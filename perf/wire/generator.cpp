// SPDX-License-Identifier: Apache-2.0
// The other end of the wire: clients and endpoints of the network in perf/traffic/network.hpp, on two DPDK
// devices whose other ends belong to a gateway. Reads commands from standard input and answers each by one
// line of JSON; the decisions are made by perf/wire/wire.py and perf/ports/ports.py.
//
//   generator CPU MEMORY_MB CLIENTS_DEVICE ENDPOINTS_DEVICE
//
// A device is a vdev string, for example net_memif0,role=client,socket=FILE.
//
//   once RATE FIRST COUNT          each flow once, in order, every checksum verified
//   random RATE SECONDS FLOWS      frames of flows 0 to FLOWS-1 at random
//   quit                           after the gateway has ended: the PMD may crash a program that polls a
//                                  memif port while its peer ends
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "drivers/eal/eal.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/traffic/network.hpp"
#include "perf/traffic/trial.hpp"

namespace penstock::perf {
namespace {

// As in penstockd, so that both ends have queues of the same length.
constexpr uint16_t kDescriptors = 1024;
constexpr int kLinkPatienceSeconds = 15;  // memif tries to connect every few seconds

std::string name_of(const std::string& device) {
    return device.substr(0, device.find(','));
}

bool start_port(uint16_t port, rte_mempool* pool) {
    const rte_eth_conf conf{};
    uint16_t rx = kDescriptors, tx = kDescriptors;
    return rte_eth_dev_configure(port, 1, 1, &conf) == 0 &&
           rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx) == 0 &&
           rte_eth_rx_queue_setup(port, 0, rx, rte_socket_id(), nullptr, pool) == 0 &&
           rte_eth_tx_queue_setup(port, 0, tx, rte_socket_id(), nullptr) == 0 && rte_eth_dev_start(port) == 0;
}

bool wait_for_link(uint16_t port) {
    for (int tries = 0; tries < kLinkPatienceSeconds * 100; ++tries) {
        rte_eth_link link{};
        if (rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

void print_latency(const char* name, const LatencyHistogram& times) {
    const double ns_per_tick = 1e9 / static_cast<double>(rte_get_tsc_hz());
    const auto us = [&](double share) { return static_cast<double>(times.at(share)) * ns_per_tick / 1000; };
    std::printf(", \"%s_us\": {\"p50\": %.2f, \"p99\": %.2f, \"p99_9\": %.2f}", name, us(0.5), us(0.99),
                us(0.999));
}

void print(const TrialResult& result) {
    std::printf("{\"offered\": %" PRIu64 ", \"blocked\": %" PRIu64 ", \"reached\": %" PRIu64
                ", \"answers_blocked\": %" PRIu64 ", \"returned\": %" PRIu64 ", \"wrong\": %" PRIu64
                ", \"strange\": %" PRIu64 ", \"seconds\": %.6f, \"longest_pause_us\": %.0f",
                result.offered, result.blocked, result.reached, result.answers_blocked, result.returned,
                result.wrong, result.strange, result.seconds, result.longest_pause_us);
    print_latency("forward", result.forward);
    print_latency("reverse", result.reverse);
    std::printf("}\n");
    std::fflush(stdout);
}

// Returns false to end the program.
bool obey(const std::string& line, const TrialPorts& ports) {
    std::istringstream words(line);
    std::string verb;
    TrialPlan plan;
    words >> verb >> plan.rate;
    if (verb == "once" && words >> plan.first_flow >> plan.flows) {
        plan.order = FlowOrder::Once;
        plan.verify_all = true;
        plan.seconds = 2 * plan.flows / plan.rate + 1;  // an upper bound; it ends with its last flow
    } else if (verb == "random" && words >> plan.seconds >> plan.flows) {
        plan.order = FlowOrder::Random;
    } else {
        return false;
    }
    if (!(plan.rate > 0) || !(plan.seconds > 0) || plan.flows == 0 ||
        plan.first_flow > kFlowsMax - plan.flows) {
        return false;
    }
    print(run_trial(ports, plan));
    return true;
}

int run(unsigned cpu, unsigned memory_mb, const std::string& clients, const std::string& endpoints) {
    auto eal = drivers::Eal::start({.worker_cpus = {cpu},
                                    .main_cpu = cpu,
                                    .memory_mb = memory_mb,
                                    .pci_allow = {},
                                    .file_prefix = "penstock-wire",
                                    .extra_args = {"--vdev=" + clients, "--vdev=" + endpoints},
                                    .sink = {}});
    if (!eal) {
        std::cerr << "generator: " << eal.error().what << "\n";
        return 1;
    }
    if (!(*eal)->has_hugepages()) {
        std::cerr << "generator: " << (*eal)->memory_description() << "\n";
    }
    // Both ports' rings full, and as many frames again in flight.
    rte_mempool* const pool = rte_pktmbuf_pool_create("generator", 8 * kDescriptors - 1, 256, 0,
                                                      RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    TrialPorts ports;
    if (pool == nullptr || rte_eth_dev_get_port_by_name(name_of(clients).c_str(), &ports.clients) != 0 ||
        rte_eth_dev_get_port_by_name(name_of(endpoints).c_str(), &ports.endpoints) != 0) {
        std::cerr << "generator: no memory or no such devices\n";
        return 1;
    }
    ports.pool = pool;
    if (!start_port(ports.clients, pool) || !start_port(ports.endpoints, pool)) {
        std::cerr << "generator: a port does not start\n";
        return 1;
    }
    if (!wait_for_link(ports.clients) || !wait_for_link(ports.endpoints)) {
        std::cerr << "generator: no gateway at the other end\n";
        return 1;
    }
    print_fingerprint();
    std::printf("{\"link\": \"up\"}\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line) && line != "quit";) {
        if (!obey(line, ports)) {
            std::cerr << "generator: not a command: " << line << "\n";
            return 2;
        }
    }
    for (const uint16_t port : {ports.clients, ports.endpoints}) {
        rte_eth_dev_stop(port);
        rte_eth_dev_close(port);
    }
    return 0;
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    if (argc != 5) {
        std::cerr << "usage: generator CPU MEMORY_MB CLIENTS_DEVICE ENDPOINTS_DEVICE; scripts/bench wire "
                     "and ports start it\n";
        return 2;
    }
    return penstock::perf::run(static_cast<unsigned>(std::atoi(argv[1])),
                               static_cast<unsigned>(std::atoi(argv[2])), argv[3], argv[4]);
}
