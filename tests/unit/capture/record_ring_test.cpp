// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture/record_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace penstock::test {
namespace record_ring_test {

using capture::Record;
using capture::RecordRing;

constexpr uint32_t kSlots = 8, kSnap = 20;

struct Read {
    Record record;
    std::vector<uint8_t> frame;
};
std::vector<Read> read_all(RecordRing& ring) {
    std::vector<Read> all;
    ring.read(~0U, [&](const Record& record, std::span<const uint8_t> frame) {
        all.push_back({record, {frame.begin(), frame.end()}});
    });
    return all;
}
bool stage(RecordRing& ring, uint64_t number, uint32_t bytes = 10) {
    const std::vector<uint8_t> frame(bytes, static_cast<uint8_t>(number));
    return ring.stage({.ticks = number, .wire_bytes = bytes}, frame.data());
}

TEST(RecordRing, PublishesWhatIsStaged) {
    RecordRing ring(kSlots, kSnap);
    EXPECT_TRUE(stage(ring, 1));
    EXPECT_TRUE(stage(ring, 2, 100));
    EXPECT_TRUE(read_all(ring).empty());
    ring.publish();
    const auto all = read_all(ring);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].record.ticks, 1u);
    EXPECT_EQ(all[0].frame, std::vector<uint8_t>(10, 1));
    EXPECT_EQ(all[1].record.wire_bytes, 100u);
    EXPECT_EQ(all[1].frame, std::vector<uint8_t>(kSnap, 2)) << "cut";
    EXPECT_TRUE(read_all(ring).empty());
}

TEST(RecordRing, TakesBackTheLastOnes) {
    RecordRing ring(kSlots, kSnap);
    for (uint64_t n = 1; n <= 4; ++n) {
        stage(ring, n);
    }
    ring.take_back(3);
    stage(ring, 9);
    ring.publish();
    const auto all = read_all(ring);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].record.ticks, 1u);
    EXPECT_EQ(all[1].record.ticks, 9u);
}

TEST(RecordRing, CountsWhatFindsNoRoom) {
    RecordRing ring(kSlots, kSnap);
    for (uint64_t n = 0; n < kSlots; ++n) {
        EXPECT_TRUE(stage(ring, n));
    }
    EXPECT_FALSE(stage(ring, 8));
    EXPECT_FALSE(stage(ring, 9));
    ring.lose(3);  // left out
    ring.publish();
    EXPECT_EQ(ring.lost(), 5u);
    EXPECT_EQ(read_all(ring).size(), kSlots);
    // The next record notes them, even if the first attempt is taken back.
    stage(ring, 10);
    ring.take_back(1);
    stage(ring, 11);
    stage(ring, 12);
    ring.publish();
    const auto all = read_all(ring);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].record.lost_before, 5u);
    EXPECT_EQ(all[1].record.lost_before, 0u);
}

TEST(RecordRing, KnowsHowFullItIs) {
    RecordRing ring(kSlots, kSnap);
    EXPECT_TRUE(ring.is_nearly_empty());
    for (uint64_t n = 0; n < kSlots; ++n) {
        EXPECT_FALSE(ring.is_nearly_full()) << n;
        stage(ring, n);
        if (n == 3) {
            EXPECT_FALSE(ring.is_nearly_empty());
            ring.publish();
            read_all(ring);
        }
    }
    for (uint64_t n = 0; n < 3; ++n) {
        stage(ring, n);
    }
    EXPECT_TRUE(ring.is_nearly_full());
}

// A writer and a reader: every record is read once and in order, or counted as lost.
TEST(RecordRing, LosesNothingUncounted) {
    RecordRing ring(kSlots, kSnap);
    constexpr uint64_t kRecords = 200'000;
    std::atomic<bool> is_done{false};
    std::jthread writer([&] {
        for (uint64_t n = 1; n <= kRecords; ++n) {
            stage(ring, n);
            ring.publish();
        }
        is_done.store(true, std::memory_order_release);
    });
    uint64_t seen = 0, noted = 0, last = 0;
    for (bool was_done = false; !was_done;) {
        was_done = is_done.load(std::memory_order_acquire);
        ring.read(3, [&](const Record& record, std::span<const uint8_t> frame) {
            ASSERT_GT(record.ticks, last);
            ASSERT_EQ(frame.front(), static_cast<uint8_t>(record.ticks));
            ASSERT_EQ(record.ticks, last + record.lost_before + 1);
            last = record.ticks;
            noted += record.lost_before;
            ++seen;
        });
        if (was_done) {
            ring.read(~0U, [&](const Record& record, std::span<const uint8_t>) {
                noted += record.lost_before;
                ++seen;
            });
        }
    }
    EXPECT_EQ(seen + ring.lost(), kRecords);
    EXPECT_LE(noted, ring.lost());
}

}  // namespace record_ring_test
}  // namespace penstock::test
