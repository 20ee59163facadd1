// SPDX-License-Identifier: Apache-2.0
// The packets that wait for a next hop, compared with a plain list.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "dataplane/route/pending.hpp"
#include "tests/support/prng.hpp"

namespace penstock::route {
namespace pending_property_test {

struct Waiting {
    uint32_t handle;
    NicPortId egress;
    IpAddr address;
    TscTime since;
};

TEST(PendingProperty, AgreesWithAList) {
    constexpr TscRate kRate{};
    test::Prng random;
    PendingPackets<uint32_t> pending(kRate);
    std::vector<Waiting> model;  // oldest first
    TscTime now{1};
    uint32_t next_handle = 0;
    const auto for_hop = [](NicPortId egress, const IpAddr& address) {
        return [=](const Waiting& w) { return w.egress == egress && w.address == address; };
    };

    for (int step = 0; step < 200'000; ++step) {
        now = now + kRate.milliseconds(random.below(12));
        // Waves: few next hops reach their own limit, many reach the total limit.
        const uint32_t spread = (step / 10'000) % 2 == 0 ? 8 : 400;
        const NicPortId egress{static_cast<uint8_t>(random.below(2))};
        const IpAddr address =
            IpAddr::v4(Be32::from_host(0x0a000000u + static_cast<uint32_t>(random.below(spread))));

        if (!random.one_in(20)) {
            const auto together = std::ranges::count_if(model, for_hop(egress, address));
            const bool is_full =
                model.size() == limits::kPendingMax || together == limits::kPendingPerNextHop;
            const HoldResult expected = is_full ? (together == 0 ? HoldResult::FullFirst : HoldResult::Full)
                                        : together == 0 ? HoldResult::HeldFirst
                                                        : HoldResult::Held;
            ASSERT_EQ(pending.hold(next_handle, egress, address, now), expected) << "step " << step;
            if (!is_full) {
                model.push_back({next_handle++, egress, address, now});
            }
        } else if (random.one_in(2)) {
            std::vector<uint32_t> gone;
            pending.expire(now, [&](uint32_t handle) { gone.push_back(handle); });
            std::vector<uint32_t> expected;
            while (!model.empty() && ticks_between(model.front().since, now) >= kRate.milliseconds(kHoldMs)) {
                expected.push_back(model.front().handle);
                model.erase(model.begin());
            }
            ASSERT_EQ(gone, expected) << "step " << step;
        } else {
            const auto table = RouteTable::build(
                {}, {{.id = {0}, .port = egress, .address = address, .state = NeighbourState::Reachable}}, {},
                {});
            std::vector<uint32_t> sent;
            pending.take_ready(*table, [&](uint32_t handle, const NextHop&) { sent.push_back(handle); });
            std::vector<uint32_t> expected;
            for (const Waiting& w : model) {
                if (for_hop(egress, address)(w)) {
                    expected.push_back(w.handle);
                }
            }
            std::erase_if(model, for_hop(egress, address));
            ASSERT_EQ(sent, expected) << "step " << step;
        }
        ASSERT_EQ(pending.size(), model.size()) << "step " << step;
    }
}

}  // namespace pending_property_test
}  // namespace penstock::route
