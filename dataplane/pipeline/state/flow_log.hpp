// SPDX-License-Identifier: Apache-2.0
// One worker's side of flow records (docs/adr/0046): what it keeps about each connection beside the
// connection table, and the queue of its records. Exists only while flow records are on.
//
// The entry of a connection has no counters. While records are on, the worker runs another function for each
// burst (counted_stages.hpp), which counts packets and bytes of each connection here. While they are off, an
// established packet executes no instruction for them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/lb/service.hpp"
#include "dataplane/pipeline/state/flow_record.hpp"
#include "dataplane/stats/counters.hpp"

namespace penstock::pipeline {

// Which connections have records.
struct FlowSelection {
    bool by_default = false;  // of Services that do not request or refuse records
    uint32_t one_in = 1;      // 1 or more: of the connections of these Services

    // Depends on the tuple and the key only, so that two gateways, or two processes, with the same key decide
    // the same.
    [[nodiscard]] bool has(lb::FlowRecords requested, const packet::FlowKey& forward,
                           const KeyedMix& mix) const noexcept {
        const bool is_on =
            requested == lb::FlowRecords::On || (requested == lb::FlowRecords::Default && by_default);
        // The low half of the hash: the high half selects the worker (nat::ReplyOwner::of_tuple).
        const uint64_t half = packet::hash_of(forward, mix) & 0xffff'ffff;
        return is_on && (one_in == 1 || (half * one_in) >> 32 == 0);
    }
};

// Written by the worker. `written` and `lost` are read by any thread.
struct FlowLog {
    // Of one connection, at its index. Zeroed memory is valid.
    struct Flow {
        TscTime started;  // 0: the connection has no records
        TscTime last;
        std::array<FlowCount, 2> passed;  // by conn::Direction
    };

    std::span<Flow> flows;  // as many as the table has units
    FlowRecordQueue* queue = nullptr;
    FlowSelection selection;
    TscTime since;  // connections that started earlier are adopted

    stats::Tally written;
    stats::Tally lost;  // the queue was full

    void prefetch(ConnectionIndex index) const noexcept { prefetch_read(&flows[index.value]); }
    void count(ConnectionIndex index, conn::Direction direction, uint32_t bytes, TscTime now) noexcept {
        Flow& flow = flows[index.value];
        FlowCount& passed = flow.passed[static_cast<size_t>(direction)];
        passed.packets += 1;
        passed.bytes += bytes;
        flow.last = now;
    }
    void push(const FlowRecord& record) noexcept { (queue->push(record) ? written : lost).add(1); }
};

}  // namespace penstock::pipeline
