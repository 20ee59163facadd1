// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/port_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dataplane/nat/port_share.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "tests/support/prng.hpp"

namespace penstock::nat {
namespace port_order_test {

TEST(BlockOrder, HasEveryBlockOnceAndKnowsItsPlace) {
    test::Prng prng;
    for (const uint32_t blocks : {1u, 2u, 3u, 4u, 5u, 15u, 16u, 17u, 64u, 504u, 1'008u, 1'024u}) {
        const BlockOrder order(blocks);
        for (int keys = 0; keys < 20; ++keys) {
            const uint64_t key = prng.next();
            std::set<uint32_t> seen;
            for (uint32_t place = 0; place < blocks; ++place) {
                const uint32_t block = order.block_at(key, place);
                ASSERT_LT(block, blocks);
                ASSERT_TRUE(seen.insert(block).second);
                ASSERT_EQ(order.place_of(key, block), place);
            }
        }
    }
}

TEST(PortOrder, HasEveryPortOnce) {
    test::Prng prng;
    for (int keys = 0; keys < 1'000; ++keys) {
        const PortOrder order(static_cast<uint32_t>(prng.next()) % (1U << PortOrder::kKeyBits));
        uint64_t seen = 0;
        for (uint32_t place = 0; place < kPortsPerBlock; ++place) {
            seen |= 1ULL << order.port_at(place);
        }
        ASSERT_EQ(seen, ~0ULL);
    }
}

// Fixed keys, so that the counts are the same in every run: 4,096 keys lead 1,008 blocks to place 0, about
// four each.
TEST(BlockOrder, IsEvenOverKeysAndUnlikeFromKeyToKey) {
    const BlockOrder order(1'008);
    test::Prng prng(1);
    std::vector<int> firsts(1'008);
    int same_step = 0;
    for (int keys = 0; keys < 4'096; ++keys) {
        const uint64_t key = prng.next();
        ++firsts[order.block_at(key, 0)];
        same_step += (order.block_at(key, 1) + 1'008 - order.block_at(key, 0)) % 1'008 == 1 ? 1 : 0;
    }
    EXPECT_LT(*std::max_element(firsts.begin(), firsts.end()), 20);
    EXPECT_LT(std::count(firsts.begin(), firsts.end(), 0), 60) << "e^-4 of 1,008 is 18";
    EXPECT_LT(same_step, 30) << "neighbours follow each other no more often than by chance, 4 times";
}

TEST(PortShare, CountsTheWorkersOwnBlocks) {
    const struct {
        PortRange range;
        uint8_t self;
        uint32_t workers;
        uint32_t blocks;
        uint32_t first;
    } cases[] = {
        {{1'024, 65'535}, 0, 1, 1'008, 16},
        {{1'024, 65'535}, 1, 2, 504, 17},
        {{1'024, 65'535}, 2, 3, 336, 17},
        {{2'048, 2'111}, 0, 4, 1, 32},
        {{2'048, 2'111}, 1, 4, 0, 33},
        {{4'000, 4'000}, 0, 1, 1, 62},
        {{2, 1}, 0, 1, 0, 0},
        {{0, 0}, 0, 1, 0, 0},
        {{65'535, 65'535}, 63, 64, 1, 1'023},
    };
    for (const auto& c : cases) {
        const PortShare share(c.range, {c.self}, c.workers);
        EXPECT_EQ(share.blocks(), c.blocks) << c.range.first << " " << int{c.self};
        if (c.blocks > 0) {
            EXPECT_EQ(share.block_at(0), c.first);
        }
        for (uint32_t i = 0; i < c.blocks; ++i) {
            const auto port = static_cast<L4Port>(share.block_at(i) * kPortsPerBlock);
            ASSERT_EQ(ReplyOwner{.workers = c.workers}.of_snat_port(port).value, c.self);
            ASSERT_EQ(share.index_of(share.block_at(i)), i);
        }
    }
}

}  // namespace port_order_test
}  // namespace penstock::nat
