// SPDX-License-Identifier: Apache-2.0
// One worker as in penstockd, built from hugepages and without EAL: 100 Services of ten endpoints; the
// endpoints on 100 nodes, ten each, with one route per node; clients behind one router. Full NAT over four
// SNAT addresses.
//
//   clients -- router -- port 0 [worker] port 1 -- node 0 .. 99 -- ten endpoints each
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/pipeline/stages.hpp"
#include "perf/harness/memory.hpp"

namespace penstock::perf {

class Gateway {
 public:
    static constexpr uint32_t kServices = 100, kEndpointsEach = 10, kNodes = 100;
    static constexpr NicPortId kUp{0}, kCluster{1};
    static constexpr MacAddr kUpMac{{2, 0, 0, 0, 0, 0x0a}}, kClusterMac{{2, 0, 0, 0, 0, 0x0b}};
    static constexpr L4Port kServicePort = 80, kEndpointPort = 8'080;

    // With capacity for `connections`. `hz`: ticks per second of the time that now() counts.
    // It may be one of several workers, which must then share their secret.
    struct Role {
        WorkerId self{0};
        uint32_t workers = 1;
        HashKey secret = HashKey::random();
    };
    Gateway(IpFamily family, uint32_t connections, uint64_t hz) : Gateway(family, connections, hz, Role{}) {}
    Gateway(IpFamily family, uint32_t connections, uint64_t hz, const Role& role);
    // The memory of a gateway, without its own arrays.
    [[nodiscard]] static size_t memory_needed(uint32_t connections) noexcept;

    // The tuple of a client's packets, by the connection's number.
    [[nodiscard]] packet::FlowKey client_tuple(uint32_t number,
                                               Protocol protocol = Protocol::Tcp) const noexcept;

    // The gateway's choices for a connection, in few bytes, because ten million of them are stored.
    struct Binding {
        uint16_t endpoint = 0;  // the low bytes of its address
        uint16_t snat_port = 0;
        uint8_t snat_address = 0;  // the lowest byte
    };
    // Derived from the tuple of a client's packet after translation.
    [[nodiscard]] Binding binding_of(const packet::FlowKey& leaves_as) const noexcept;
    // The tuple of the endpoint's replies.
    [[nodiscard]] packet::FlowKey reply_tuple(const Binding& binding,
                                              Protocol protocol = Protocol::Tcp) const noexcept;

    [[nodiscard]] std::span<const std::byte> table_memory() const noexcept { return table_memory_.span(); }
    [[nodiscard]] pipeline::WorkerContext& context() noexcept { return *context_; }
    [[nodiscard]] const config::Snapshot& snapshot() const noexcept { return snapshot_; }
    [[nodiscard]] IpFamily family() const noexcept { return family_; }

 private:
    [[nodiscard]] IpAddr address(uint8_t net, uint32_t host) const noexcept;
    void publish_services();
    void publish_routes();

    IpFamily family_;
    HugeMemory table_memory_, links_memory_, port_memory_;
    std::vector<uint32_t> backend_heads_ = std::vector<uint32_t>(2 * kServices * kEndpointsEach);
    std::vector<uint32_t> cursors_ = std::vector<uint32_t>(lb::SchedulerState::kCursors);
    std::vector<std::atomic<route::UseSeconds>> neighbour_use_ =
        std::vector<std::atomic<route::UseSeconds>>(limits::kNeighboursMax);
    stats::WorkerCounters worker_counters_;
    std::vector<stats::ServiceCounters> service_counters_ =
        std::vector<stats::ServiceCounters>(2 * kServices);
    std::vector<stats::BackendCounters> backend_counters_ =
        std::vector<stats::BackendCounters>(2 * kServices * kEndpointsEach);
    std::array<const stats::BackendCounters*, 1> backend_rows_{backend_counters_.data()};
    pipeline::ResolveQueue resolve_;
    config::Snapshot snapshot_;
    std::unique_ptr<pipeline::WorkerContext> context_;
};

}  // namespace penstock::perf
