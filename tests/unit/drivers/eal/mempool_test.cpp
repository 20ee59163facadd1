// SPDX-License-Identifier: Apache-2.0
// Number and size of packet buffers for a set of ports.
#include "drivers/eal/mempool.hpp"

#include <gtest/gtest.h>

#include "dataplane/base/limits.hpp"

namespace penstock::drivers {
namespace mempool_test {

TEST(MempoolShape, HoldsEveryPlaceAPacketCanBe) {
    MempoolDemand demand{
        .rx_descriptors = 4096, .tx_descriptors = 4096, .workers = 2, .ports = 2, .frame_bytes_max = 2016};
    const auto shape = mempool_shape(demand);
    ASSERT_TRUE(shape);
    // Full caches of both workers and the twin I/O thread, full handoff rings, full holds and punt rings of
    // each class, all descriptors in use.
    const uint32_t worst = 8192 + 3 * 384 +
                           2 * (limits::kHandoffRing + limits::kPendingMax + limits::kFragmentsWaitingMax) +
                           2 * (2 * limits::kPuntRing + limits::kPuntRoutingRing + limits::kPuntLinkRing);
    EXPECT_GE(shape->count, worst);
    EXPECT_LT(shape->count, 2 * worst);
    EXPECT_EQ(shape->data_room, 2048 + 128);
    // Both ports have one transmit queue: the ring in front of each of them is full as well.
    for (const uint32_t rings : {2U, 16U, 64U}) {
        demand.tx_through = rings;
        EXPECT_GE(mempool_shape(demand)->count, worst + rings * limits::kHandoffRing) << rings;
    }
}

TEST(MempoolShape, RoomFollowsTheLargestFrame) {
    const struct {
        uint32_t frame;
        uint32_t room;
    } rows[] = {{64, 2048}, {2048, 2048}, {2049, 3072}, {9022, 9216}, {16'352, 16'384}};
    for (const auto& row : rows) {
        const auto shape = mempool_shape({.workers = 1, .ports = 1, .frame_bytes_max = row.frame});
        ASSERT_TRUE(shape);
        EXPECT_EQ(shape->data_room, row.room + 128) << row.frame;
    }
    EXPECT_FALSE(mempool_shape({.workers = 1, .ports = 1, .frame_bytes_max = 65'600}));
    // An AF_XDP buffer with its headers must fit in a page. Here another port's MTU prevents that.
    const auto crowded =
        mempool_shape({.workers = 1, .ports = 2, .frame_bytes_max = 9022, .object_bytes_max = 4096});
    ASSERT_FALSE(crowded);
    EXPECT_EQ(crowded.error().code, Errc::InvalidArgument);
    EXPECT_TRUE(mempool_shape({.workers = 1, .ports = 2, .frame_bytes_max = 1522, .object_bytes_max = 4096}));
}

// By which a pool is created, also in a process that has not probed its ports yet.
TEST(MempoolShape, HasNoGapsForAfXdpAlone) {
    const MempoolDemand af_xdp{.workers = 1, .ports = 1, .frame_bytes_max = 1522, .object_bytes_max = 4096};
    EXPECT_TRUE(mempool_shape(af_xdp)->is_gapless);
    MempoolDemand mixed = af_xdp;
    mixed.has_pci = true;  // it may need contiguous buffers
    EXPECT_FALSE(mempool_shape(mixed)->is_gapless);
    EXPECT_FALSE(mempool_shape({.workers = 1, .ports = 1, .frame_bytes_max = 1522})->is_gapless);
}

}  // namespace mempool_test
}  // namespace penstock::drivers
