// SPDX-License-Identifier: Apache-2.0
// The plan that a successor lays out its memory by passes through a message of another process.
#include "control/gateway/upgrade/memory_plan.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/reply_hashes.hpp"

namespace penstock::gateway {
namespace memory_plan_test {

constexpr uint32_t kWorkers = 4;

MemoryPlan plan_of_two_ports() {
    return {.workers = kWorkers,
            .ports = {{.rx_queues = 4, .tx_queues = 2, .reply_hash = test::hash_in_turn(128, kWorkers)},
                      {.rx_queues = 1, .tx_queues = 4, .reply_hash = std::nullopt}},
            .pools = {{-1, {.count = 9000, .cache = 256, .data_room = 2176, .is_gapless = true}},
                      {1, {.count = 70'000, .cache = 256, .data_room = 9344, .is_gapless = false}}}};
}

TEST(MemoryPlan, IsTheSameForTheSuccessor) {
    MemoryPlan plan = plan_of_two_ports();
    const auto received = [&] {
        v1::UpgradeMemory memory;
        EXPECT_TRUE(memory.ParseFromString(to_proto(plan).SerializeAsString()));
        return plan_from_proto(memory, plan.workers, plan.ports.size());
    };
    EXPECT_EQ(received(), plan);
    plan.ports[0].reply_hash->udp6 = false;
    plan.ports[0].reply_hash->worker_of.back() = WorkerId{0};
    EXPECT_EQ(received(), plan);
    // Any hash is right for a single worker, and none is used.
    plan.workers = 1;
    plan.ports = {{.rx_queues = 1, .tx_queues = 1, .reply_hash = nat::ReplyHash{}}};
    EXPECT_EQ(received(), plan);
}

TEST(MemoryPlan, OfAProcessWithOtherOptionsIsNotUsed) {
    const v1::UpgradeMemory memory = to_proto(plan_of_two_ports());
    EXPECT_TRUE(plan_from_proto(memory, kWorkers, 2));
    EXPECT_FALSE(plan_from_proto(memory, kWorkers + 1, 2)) << "another number of workers";
    EXPECT_FALSE(plan_from_proto(memory, kWorkers, 3)) << "another number of ports";
    EXPECT_FALSE(plan_from_proto({}, kWorkers, 2)) << "a process of an earlier release reports none";
    EXPECT_FALSE(plan_from_proto({}, 0, 0));
}

TEST(MemoryPlan, ThatNoProcessCanHaveIsNotUsed) {
    const struct {
        const char* name;
        std::function<void(v1::UpgradeMemory&)> change;
    } rows[] = {
        {"no receive queue", [](auto& memory) { memory.mutable_ports(0)->set_rx_queues(0); }},
        {"no transmit queue", [](auto& memory) { memory.mutable_ports(1)->set_tx_queues(0); }},
        {"more queues than workers", [](auto& memory) { memory.mutable_ports(0)->set_rx_queues(5); }},
        {"more queues than a number holds",
         [](auto& memory) { memory.mutable_ports(0)->set_tx_queues(65'537); }},
        {"a table without entries",
         [](auto& memory) { memory.mutable_ports(0)->mutable_reply_hash()->clear_worker_of(); }},
        {"a worker that does not exist",
         [](auto& memory) { (*memory.mutable_ports(0)->mutable_reply_hash()->mutable_worker_of())[3] = 9; }},
        {"a key that is too short",
         [](auto& memory) { memory.mutable_ports(0)->mutable_reply_hash()->set_key("short"); }},
        {"no pool", [](auto& memory) { memory.clear_pools(); }},
        {"an empty pool", [](auto& memory) { memory.mutable_pools(0)->set_buffers(0); }},
        {"a cache that DPDK refuses", [](auto& memory) { memory.mutable_pools(0)->set_cached(513); }},
        {"buffers of 64 KB and more", [](auto& memory) { memory.mutable_pools(1)->set_data_room(65'536); }},
    };
    for (const auto& row : rows) {
        v1::UpgradeMemory memory = to_proto(plan_of_two_ports());
        row.change(memory);
        EXPECT_FALSE(plan_from_proto(memory, kWorkers, 2)) << row.name;
    }
}

}  // namespace memory_plan_test
}  // namespace penstock::gateway
