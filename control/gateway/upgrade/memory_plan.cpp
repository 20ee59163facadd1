// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/memory_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "dataplane/base/limits.hpp"

namespace penstock::gateway {
namespace {

v1::UpgradeReplyHash message_of_hash(const nat::ReplyHash& hash) {
    v1::UpgradeReplyHash out;
    out.set_key(std::string(hash.key.begin(), hash.key.end()));
    for (const WorkerId worker : hash.worker_of) {
        out.mutable_worker_of()->push_back(static_cast<char>(worker.value));
    }
    out.set_tcp4(hash.tcp4);
    out.set_udp4(hash.udp4);
    out.set_tcp6(hash.tcp6);
    out.set_udp6(hash.udp6);
    return out;
}

nat::ReplyHash hash_of_message(const v1::UpgradeReplyHash& hash) {
    nat::ReplyHash out;
    out.key.assign(hash.key().begin(), hash.key().end());
    for (const char worker : hash.worker_of()) {
        out.worker_of.push_back(WorkerId{static_cast<uint8_t>(worker)});
    }
    out.tcp4 = hash.tcp4();
    out.udp4 = hash.udp4();
    out.tcp6 = hash.tcp6();
    out.udp6 = hash.udp6();
    return out;
}

// Empty: no port has such queues.
std::optional<MemoryPlan::Port> port_of_message(const v1::UpgradePort& port, uint32_t workers) {
    const auto is_possible = [&](uint32_t queues) { return queues >= 1 && queues <= workers; };
    if (!is_possible(port.rx_queues()) || !is_possible(port.tx_queues())) {
        return std::nullopt;
    }
    MemoryPlan::Port out{.rx_queues = static_cast<uint16_t>(port.rx_queues()),
                         .tx_queues = static_cast<uint16_t>(port.tx_queues()),
                         .reply_hash = std::nullopt};
    if (port.has_reply_hash()) {
        out.reply_hash = hash_of_message(port.reply_hash());
        if (workers > 1 && !nat::obstacle_of(*out.reply_hash, workers).empty()) {
            return std::nullopt;
        }
    }
    return out;
}

}  // namespace

v1::UpgradeMemory to_proto(const MemoryPlan& plan) {
    v1::UpgradeMemory out;
    out.set_workers(plan.workers);
    for (const MemoryPlan::Port& port : plan.ports) {
        v1::UpgradePort& added = *out.add_ports();
        added.set_rx_queues(port.rx_queues);
        added.set_tx_queues(port.tx_queues);
        if (port.reply_hash) {
            *added.mutable_reply_hash() = message_of_hash(*port.reply_hash);
        }
    }
    for (const auto& [node, shape] : plan.pools) {
        v1::UpgradePool& added = *out.add_pools();
        added.set_node(node);
        added.set_buffers(shape.count);
        added.set_cached(shape.cache);
        added.set_data_room(shape.data_room);
        added.set_is_gapless(shape.is_gapless);
    }
    return out;
}

std::optional<MemoryPlan> plan_from_proto(const v1::UpgradeMemory& memory, uint32_t workers, size_t ports) {
    if (memory.workers() != workers || static_cast<size_t>(memory.ports_size()) != ports || ports == 0 ||
        memory.pools_size() == 0) {
        return std::nullopt;
    }
    MemoryPlan plan{.workers = workers, .ports = {}, .pools = {}};
    for (const v1::UpgradePort& port : memory.ports()) {
        auto read = port_of_message(port, workers);
        if (!read) {
            return std::nullopt;
        }
        plan.ports.push_back(std::move(*read));
    }
    for (const v1::UpgradePool& pool : memory.pools()) {
        if (pool.buffers() == 0 || pool.cached() > drivers::kMempoolCacheMax ||
            pool.data_room() > UINT16_MAX) {
            return std::nullopt;
        }
        plan.pools[pool.node()] = {.count = pool.buffers(),
                                   .cache = pool.cached(),
                                   .data_room = static_cast<uint16_t>(pool.data_room()),
                                   .is_gapless = pool.is_gapless()};
    }
    return plan;
}

}  // namespace penstock::gateway
