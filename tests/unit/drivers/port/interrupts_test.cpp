// SPDX-License-Identifier: Apache-2.0
// Interrupts that are requested, by driver and declared ability.
#include "drivers/port/interrupts.hpp"

#include <gtest/gtest.h>

namespace penstock::drivers {
namespace interrupts_test {

TEST(Interrupts, AreAskedForWhereTheyCome) {
    const DeclaredInterrupts both{.link = true, .removal = true};
    const InterruptWish all = wish_interrupts("net_ice", true, both);
    EXPECT_TRUE(all.rx_queues && all.link && all.removal);
    EXPECT_EQ(all.why_no_rx_queues + all.why_no_link, "");
    const InterruptWish silent = wish_interrupts("net_vmxnet3", true, {.link = true, .silent_link = true});
    EXPECT_TRUE(silent.rx_queues);
    EXPECT_FALSE(silent.link || silent.removal);
    EXPECT_EQ(silent.why_no_link, "it is known not to be raised");
    const InterruptWish none = wish_interrupts("net_ring", true, {});
    EXPECT_FALSE(none.rx_queues || none.link || none.removal);
    EXPECT_EQ(none.why_no_link, "the device has none");
    EXPECT_TRUE(none.why_no_rx_queues.starts_with("net_ring has none")) << none.why_no_rx_queues;
    const InterruptWish polling = wish_interrupts("net_ice", false, both);
    EXPECT_FALSE(polling.rx_queues);
    EXPECT_EQ(polling.why_no_rx_queues, "") << "nobody asked";
    EXPECT_TRUE(polling.link);
}

}  // namespace interrupts_test
}  // namespace penstock::drivers
