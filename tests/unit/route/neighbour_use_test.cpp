#include "dataplane/route/neighbour_use.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace penstock::route {
namespace {

TEST(NeighbourUse, TheLatestOfAllWorkersCounts) {
    std::vector<std::atomic<UseSeconds>> memory[2] = {std::vector<std::atomic<UseSeconds>>(NeighbourUse::kStamps),
                                                      std::vector<std::atomic<UseSeconds>>(NeighbourUse::kStamps)};
    std::array workers{NeighbourUse(memory[0]), NeighbourUse(memory[1])};
    const NeighbourId id{NeighbourUse::kStamps - 1};
    EXPECT_EQ(last_used_by_any(workers, id), 0u);
    workers[0].note(id, 100);
    workers[1].note(id, 90);
    EXPECT_EQ(last_used_by_any(workers, id), 100u);
    workers[1].note(id, 101);
    EXPECT_EQ(last_used_by_any(workers, id), 101u);
    EXPECT_EQ(last_used_by_any(workers, NeighbourId{0}), 0u);
    EXPECT_EQ(last_used_by_any(workers, NeighbourId{}), 0u) << "an unset id was never used";
}

struct UseCase {
    const char* name;
    UseSeconds last_used;
    UseSeconds now;
    bool expected;
};

TEST(NeighbourUse, OnlyWhatIsUsedIsConfirmedAgain) {
    constexpr UseSeconds kWindow = 30;
    const UseCase cases[] = {
        {"never used", 0, 10, false},
        {"just now", 100, 100, true},
        {"at the edge", 100, 130, true},
        {"past the edge", 100, 131, false},
        {"another core's clock", 101, 100, true},
    };
    for (const UseCase& c : cases) {
        EXPECT_EQ(is_in_use(c.last_used, c.now, kWindow), c.expected) << c.name;
    }
}

}  // namespace
}  // namespace penstock::route
