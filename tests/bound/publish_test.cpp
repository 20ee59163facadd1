// SPDX-License-Identifier: Apache-2.0
// Publication between plain threads, so that TSan sees every access: readers that act as workers, one
// publisher, and snapshots that would be read after their end if the grace period were too short.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "dataplane/config/publish.hpp"
#include "tests/support/eal_fixture.hpp"

namespace penstock::config {
namespace publish_test {

// A snapshot with parts that carry its number, so that a mixture or a freed snapshot is detected.
std::unique_ptr<Snapshot> numbered(uint32_t number) {
    auto snapshot = std::make_unique<Snapshot>();
    auto snat = std::make_shared<nat::SnatConfig>();
    snat->addresses = std::vector<nat::SnatAddress>(number % 7 + 1);
    snat->ports = {static_cast<L4Port>(number), static_cast<L4Port>(number)};
    snapshot->snat = snat;
    return snapshot;
}

TEST(Publisher, ReadersSeeWholeSnapshotsAndNoneAfterItsEnd_GEN007) {
    ASSERT_TRUE(test::start_eal());
    constexpr uint32_t kReaders = 3;
    auto created = Publisher::create(kReaders, numbered(0));
    ASSERT_TRUE(created.has_value());
    Publisher& publisher = **created;
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> torn{0};
    std::vector<std::atomic<uint64_t>> rounds(kReaders);
    std::vector<std::thread> readers;
    for (uint8_t r = 0; r < kReaders; ++r) {
        readers.emplace_back([&, r] {
            publisher.go_online({r});
            uint64_t last = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                const Snapshot* snapshot = publisher.read();
                const nat::SnatConfig& snat = *snapshot->snat;
                if (snat.ports.first != snat.ports.last ||
                    snat.addresses.size() != snat.ports.first % 7 + 1u || snapshot->generation < last) {
                    torn.fetch_add(1);
                }
                last = snapshot->generation;
                publisher.quiescent({r});
                rounds[r].fetch_add(1, std::memory_order_relaxed);
                std::this_thread::yield();
            }
            publisher.go_offline({r});
        });
    }
    // On a busy machine 500 publications can be over before a reader has run once.
    for (const std::atomic<uint64_t>& reader : rounds) {
        while (reader.load(std::memory_order_relaxed) == 0) {
            std::this_thread::yield();
        }
    }
    for (uint32_t number = 1; number <= 500; ++number) {
        publisher.publish(numbered(number));
        EXPECT_EQ(publisher.current().snat->ports.first, number);
    }
    stop = true;
    for (std::thread& reader : readers) {
        reader.join();
    }
    EXPECT_EQ(torn.load(), 0u);
    publisher.publish(numbered(1));  // with every reader offline it must not wait
    EXPECT_EQ(publisher.current().generation, 502u);
}

// The grace period waits for a reader that holds the old snapshot, as long as it holds it.
TEST(Publisher, DoesNotFreeWhatAReaderStillHolds) {
    ASSERT_TRUE(test::start_eal());
    auto created = Publisher::create(1, numbered(5));
    ASSERT_TRUE(created.has_value());
    Publisher& publisher = **created;
    std::weak_ptr<const nat::SnatConfig> old = publisher.current().snat;
    publisher.go_online({0});
    const Snapshot* held = publisher.read();
    std::atomic<bool> published{false};
    std::thread control([&] {
        publisher.publish(numbered(6));
        published = true;
    });
    while (publisher.read() == held) {  // until the pointer is exchanged
        std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(published.load());
    EXPECT_FALSE(old.expired());
    EXPECT_EQ(held->snat->ports.first, 5);
    publisher.quiescent({0});
    control.join();
    EXPECT_TRUE(published.load());
    EXPECT_TRUE(old.expired());
    publisher.go_offline({0});
}

// For a worker that has stopped in the middle of a round: it may read its snapshot at any later time.
TEST(Publisher, DoesNotWaitForAStoppedReaderForeverAndKeepsWhatItHolds) {
    ASSERT_TRUE(test::start_eal());
    auto created = Publisher::create(2, numbered(0), std::chrono::milliseconds(20));
    ASSERT_TRUE(created.has_value());
    Publisher& publisher = **created;
    publisher.go_online({0});
    publisher.go_online({1});
    std::weak_ptr<const nat::SnatConfig> first = publisher.current().snat;
    const Snapshot* held = publisher.read();
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> seen{0};
    std::thread healthy([&] {
        while (!stop.load()) {
            seen = publisher.read()->generation;
            publisher.quiescent({1});
            std::this_thread::yield();
        }
        publisher.go_offline({1});
    });
    EXPECT_EQ(publisher.publish(numbered(1)), std::vector<WorkerId>{{0}})
        << "the one that has stopped is named";
    EXPECT_EQ(publisher.publish(numbered(2)), std::vector<WorkerId>{{0}});
    EXPECT_EQ(publisher.publish(numbered(3)), std::vector<WorkerId>{{0}});
    EXPECT_EQ(publisher.reclaim(), 3U);
    EXPECT_FALSE(first.expired());
    EXPECT_EQ(held->snat->ports.first, 0) << "what the stopped reader holds is whole";
    while (seen.load() < 4) {  // the other reader reads the new snapshot
        std::this_thread::yield();
    }
    const Publisher::Moment before = publisher.now();
    EXPECT_FALSE(publisher.has_passed(before));
    publisher.quiescent({0});  // it continues
    EXPECT_EQ(publisher.read()->snat->ports.first, 3);
    while (!publisher.has_passed(before)) {
        std::this_thread::yield();
    }
    EXPECT_EQ(publisher.reclaim(), 0U);
    EXPECT_TRUE(first.expired());
    stop = true;
    healthy.join();
    publisher.go_offline({0});
    EXPECT_TRUE(publisher.publish(numbered(4)).empty());
}

// A stopped worker costs the time limit once, not at each publication.
TEST(Publisher, WaitsForAStoppedReaderOnce) {
    ASSERT_TRUE(test::start_eal());
    constexpr std::chrono::milliseconds kWait{100};
    auto created = Publisher::create(1, numbered(0), kWait);
    ASSERT_TRUE(created.has_value());
    Publisher& publisher = **created;
    publisher.go_online({0});
    EXPECT_EQ(publisher.publish(numbered(1)).size(), 1U);
    const auto began = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < 100; ++i) {
        EXPECT_EQ(publisher.publish(numbered(i)).size(), 1U);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 100 * kWait);
    publisher.go_offline({0});
    EXPECT_EQ(publisher.reclaim(), 0U);
}

}  // namespace publish_test
}  // namespace penstock::config
