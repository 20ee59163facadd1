// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/reply_owner.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace penstock::nat {
namespace reply_owner_test {

// A client must not be able to compute the worker of its flows, and clients must be distributed.
TEST(ReplyOwner, ClientsAndTuplesAreSpreadEvenlyByTheSecret) {
    constexpr uint32_t kFlows = 20'000;
    for (const uint32_t workers : {1u, 2u, 3u, 4u, 64u}) {
        const ReplyOwner owner{workers, {1, 2}};
        const ReplyOwner other{workers, {3, 4}};
        std::vector<uint32_t> by_client(workers), by_tuple(workers);
        uint32_t agree = 0;
        for (uint32_t i = 0; i < kFlows; ++i) {
            const IpAddr client = IpAddr::v4(Be32::from_host(0x0a000000 + i));
            ++by_client[owner.of_client(client).value];
            ++by_tuple[owner.of_tuple({.source = client, .source_port = 1, .destination_port = 80}).value];
            agree += owner.of_client(client) == other.of_client(client) ? 1 : 0;
        }
        const double fair = double{kFlows} / workers;
        for (uint32_t worker = 0; worker < workers; ++worker) {
            EXPECT_NEAR(by_client[worker], fair, fair * 0.3 + 1) << workers;
            EXPECT_NEAR(by_tuple[worker], fair, fair * 0.3 + 1) << workers;
        }
        EXPECT_NEAR(agree, fair, fair * 0.3 + 1) << "placement must change with the secret";
    }
}

// Blocks are assigned in turn, so that every contiguous range of a few blocks has a share for each worker.
TEST(ReplyOwner, SnatPortsGoRoundInBlocks) {
    const ReplyOwner owner{.workers = 4};
    EXPECT_EQ(owner.of_snat_port(1'024).value, 0);
    EXPECT_EQ(owner.of_snat_port(1'087).value, 0);
    EXPECT_EQ(owner.of_snat_port(1'088).value, 1);
    EXPECT_EQ(owner.of_snat_port(1'216).value, 3);
    EXPECT_EQ(owner.of_snat_port(1'280).value, 0);
    EXPECT_EQ(owner.of_snat_port(65'535).value, 3);
}

TEST(ReplyOwner, EveryWorkerHasPortsOfItsOwnAndNamesEachOnceARound) {
    for (const uint32_t workers : {1u, 2u, 3u, 5u, 7u, 16u, 63u, 64u}) {
        const ReplyOwner owner{.workers = workers};
        std::set<L4Port> named;
        for (uint8_t w = 0; w < workers; ++w) {
            const L4Port first = owner.port_of({w}, 0);
            uint64_t number = 0;
            do {
                const L4Port port = owner.port_of({w}, number);
                ASSERT_GE(port, 1024) << workers;
                ASSERT_EQ(owner.of_snat_port(port).value, w) << workers << " " << port;
                ASSERT_TRUE(named.insert(port).second) << workers << " " << port;
            } while (owner.port_of({w}, ++number) != first);
        }
        EXPECT_EQ(named.size(), 65'536u - 1'024u) << workers;
    }
}

}  // namespace reply_owner_test
}  // namespace penstock::nat
