// SPDX-License-Identifier: Apache-2.0
// Which way leads replies to their worker, from what a device reports.
#include "drivers/steering/steering_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/drivers/steering/rss_readings.hpp"

namespace penstock::drivers {
namespace steering_plan_test {

using test_readings::kTcpOnly;
using test_readings::rss_of;

RssReading unreadable_key(unsigned queues) {
    RssReading reading = rss_of(queues);
    reading.key.clear();
    reading.key_reason = "the driver does not report its RSS key: Operation not supported";
    return reading;
}

RssReading unreadable_table(unsigned queues) {
    RssReading reading = rss_of(queues);
    reading.table.clear();
    reading.table_reason = "the driver reports no RSS indirection table";
    return reading;
}

// The key of a symmetric hash repeats every 16 bits, so a source port changes the hash as the destination
// port does. But all of its columns are among 16, and a table entry can still be predicted. A key of zeros
// maps every packet to entry 0.
RssReading key_of(unsigned queues, uint8_t even, uint8_t odd) {
    RssReading reading = rss_of(queues);
    for (size_t i = 0; i < reading.key.size(); ++i) {
        reading.key[i] = i % 2 == 0 ? even : odd;
    }
    return reading;
}

RssReading without_queue(unsigned queues, uint16_t missing) {
    RssReading reading = rss_of(queues);
    std::replace(reading.table.begin(), reading.table.end(), missing,
                 static_cast<uint16_t>((missing + 1) % queues));
    return reading;
}

const FlowKindSupport kRulesValid{.validates = true, .reason = {}};
const FlowKindSupport kRulesRefused{.validates = false, .reason = "no RTE_FLOW_ACTION_TYPE_QUEUE"};

TEST(SteeringPlan, TakesTheBestWayThatIsNotRefusedByName) {
    const struct {
        const char* driver;
        SteeringFacts facts;
        Steering steering;
        bool stays;
        const char* reason;
    } rows[] = {
        {"net_af_packet",
         {.workers = 1, .rx_queues = 1},
         Steering::Handoff,
         true,
         "one worker owns everything"},
        {"net_ixgbe",
         {.workers = 1, .rx_queues = 1, .snat_to_queue = kRulesValid},
         Steering::Handoff,
         true,
         "one worker owns everything"},
        {"net_af_packet",
         {.workers = 2, .rx_queues = 2},
         Steering::Handoff,
         false,
         "the kernel's fanout moves a flow"},
        {"net_af_xdp",
         {.workers = 2, .rx_queues = 1},
         Steering::Handoff,
         false,
         "1 receive queues for 2 workers"},
        {"net_ring", {.workers = 2, .rx_queues = 2}, Steering::Handoff, false, "the writer of the ring"},
        {"net_null",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2)},
         Steering::Handoff,
         false,
         "has no effect"},
        {"net_tap",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2)},
         Steering::Handoff,
         false,
         "last sent a packet of it"},
        {"net_tap",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2), .snat_to_queue = kRulesValid},
         Steering::FlowRules,
         false,
         "a flow rule sends each worker's SNAT ports to its queue; not by RSS: the kernel sends a flow"},
        {"net_virtio_user0",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4)},
         Steering::Handoff,
         false,
         "vhost side"},
        {"net_virtio",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4)},
         Steering::PredictableRss,
         true,
         "hash of tcp4,udp4,tcp6,udp6"},
        {"net_virtio", {.workers = 4, .rx_queues = 4}, Steering::Handoff, false, "no RSS"},
        {"net_ixgbe",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4)},
         Steering::PredictableRss,
         true,
         "the port's own RSS hash"},
        {"net_ixgbe",
         {.workers = 3, .rx_queues = 3, .rss = rss_of(3)},
         Steering::PredictableRss,
         true,
         "the port's own RSS hash"},
        // The hash function cannot be read: if it is in doubt, nothing is predicted.
        {"net_i40e",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2), .other_hash = true},
         Steering::Handoff,
         true,
         "support-multi-driver"},
        {"net_i40e",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2)},
         Steering::PredictableRss,
         true,
         "the port's own RSS hash"},
        // RSS is tried first, and rules only if RSS cannot be used.
        {"net_ixgbe",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4), .snat_to_queue = kRulesValid},
         Steering::PredictableRss,
         true,
         "RSS"},
        {"net_ixgbe",
         {.workers = 8, .rx_queues = 4, .rss = rss_of(4)},
         Steering::Handoff,
         false,
         "4 receive queues for 8 workers"},
        {"net_ixgbe",
         {.workers = 8, .rx_queues = 4, .rss = rss_of(4), .snat_to_queue = kRulesValid},
         Steering::Handoff,
         false,
         "4 receive queues for 8 workers"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = unreadable_key(2)},
         Steering::Handoff,
         true,
         "does not report its RSS key"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = unreadable_table(2)},
         Steering::Handoff,
         true,
         "no RSS indirection table"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = key_of(2, 0, 0)},
         Steering::Handoff,
         true,
         "its RSS cannot be used: worker"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = key_of(2, 0x6d, 0x5a)},
         Steering::PredictableRss,
         true,
         "the port's own RSS"},
        {"net_ixgbe",
         {.workers = 4, .rx_queues = 4, .rss = without_queue(4, 2)},
         Steering::Handoff,
         true,
         "worker 2 would own 0"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2, kAllRssKinds, 96)},
         Steering::Handoff,
         true,
         "96 entries"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2, RssKinds{})},
         Steering::Handoff,
         false,
         "neither TCP nor UDP"},
        {"net_vmxnet3",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2, kTcpOnly)},
         Steering::PredictableRss,
         false,
         "hash of tcp4,tcp6; replies of udp4,udp6 are handed over"},
        {"net_ixgbe",
         {.workers = 2,
          .rx_queues = 2,
          .rss = rss_of(2),
          .check_failed = "3 of 64 known packets reached another queue"},
         Steering::Handoff,
         false,
         "3 of 64 known packets"},
        {"net_ixgbe",
         {.workers = 2,
          .rx_queues = 2,
          .rss = rss_of(2),
          .check_failed = "3 of 64 known packets",
          .snat_to_queue = kRulesValid},
         Steering::FlowRules,
         false,
         "not by RSS: 3 of 64"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = unreadable_key(2), .snat_to_queue = kRulesRefused},
         Steering::Handoff,
         true,
         "does not report its RSS key: Operation not supported; no flow rules: no RTE_FLOW"},
    };
    for (const auto& row : rows) {
        const SteeringPlan plan = plan_steering(pmd_profile(row.driver), row.facts);
        EXPECT_STREQ(to_string(plan.steering), to_string(row.steering)) << row.driver << ": " << plan.reason;
        EXPECT_EQ(plan.flow_stays_on_queue, row.stays) << row.driver << ": " << plan.reason;
        EXPECT_NE(plan.reason.find(row.reason), std::string::npos) << row.driver << ": " << plan.reason;
        EXPECT_EQ(plan.reply_hash.has_value(), plan.steering == Steering::PredictableRss) << row.driver;
    }
}

TEST(SteeringPlan, SaysTheHashInTheWorkersTerms) {
    RssReading reading = rss_of(4, kTcpOnly, 8);
    reading.table = {3, 2, 1, 0, 0, 1, 2, 3};
    // Two workers for four queues: a worker polls every second queue.
    const SteeringPlan plan =
        plan_steering(pmd_profile("net_ixgbe"), {.workers = 2, .rx_queues = 4, .rss = reading});
    ASSERT_TRUE(plan.reply_hash) << plan.reason;
    EXPECT_EQ(plan.reply_hash->key, reading.key);
    EXPECT_EQ(plan.reply_hash->worker_of, (std::vector<WorkerId>{{1}, {0}, {1}, {0}, {0}, {1}, {0}, {1}}));
    EXPECT_TRUE(plan.reply_hash->tcp4 && plan.reply_hash->tcp6);
    EXPECT_FALSE(plan.reply_hash->udp4 || plan.reply_hash->udp6);
}

}  // namespace steering_plan_test
}  // namespace penstock::drivers
