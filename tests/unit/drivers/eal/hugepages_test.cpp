// SPDX-License-Identifier: Apache-2.0
// Hugepages that a start reserves and gives back.
#include "drivers/eal/hugepages.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/scratch_folder.hpp"

namespace penstock::drivers {
namespace hugepages_test {

namespace fs = std::filesystem;

// A hugepage pool as the kernel shows it. The files do not react to writes, and a test can change them
// between two calls only, so these tests check the requested values.
void write_pool(const fs::path& folder, uint64_t total, uint64_t free, uint64_t promised) {
    fs::create_directories(folder);
    std::ofstream(folder / "nr_hugepages") << total;
    std::ofstream(folder / "free_hugepages") << free;
    std::ofstream(folder / "resv_hugepages") << promised;
}

uint64_t pool_total(const fs::path& folder) {
    uint64_t total = 0;
    std::ifstream(folder / "nr_hugepages") >> total;
    return total;
}

TEST(Hugepages, TakesWhatIsThereFirst) {
    const test::ScratchFolder folder;
    const fs::path small = folder.path() / "hugepages-2048kB";
    write_pool(small, 300, 280, 20);
    const auto enough = reserve_hugepages(512, folder.path());
    ASSERT_TRUE(enough) << enough.error().what;
    EXPECT_EQ(*enough, 0u);
    EXPECT_EQ(pool_total(small), 300u);
    // Reserved pages do not count, 1 GB pages do.
    write_pool(small, 300, 280, 100);
    write_pool(folder.path() / "hugepages-1048576kB", 1, 1, 0);
    EXPECT_EQ(reserve_hugepages(512, folder.path()).value_or(99), 0u);
}

// Two concurrent starts must not count the same pages.
TEST(Hugepages, OneProcessAtATimeHasItsTurn) {
    const test::ScratchFolder folder;
    write_pool(folder.path() / "hugepages-2048kB", 0, 0, 0);
    const std::string file = folder.path() / "hugepages-2048kB/nr_hugepages";
    std::atomic<bool> second_began{false};
    std::atomic<bool> second_has_it{false};
    std::thread second;
    {
        const HugepageTurn first(file);
        second = std::thread([&] {
            second_began = true;
            const HugepageTurn turn(file);
            second_has_it = true;
        });
        while (!second_began) {
            std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(second_has_it);
    }
    second.join();
    EXPECT_TRUE(second_has_it);
    const HugepageTurn without_a_pool(folder.path() / "nowhere");  // does not block
}

TEST(Hugepages, AsksOnlyForWhatIsMissingAndGivesItBack) {
    const test::ScratchFolder folder;
    const fs::path pool = folder.path() / "hugepages-2048kB";
    write_pool(pool, 100, 60, 0);
    // The folder does not react like a kernel: no page appears, so the request must fail and be undone.
    const auto refused = reserve_hugepages(512, folder.path());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::Exhausted);
    EXPECT_NE(refused.error().what.find("60 of 256 pages are free"), std::string::npos)
        << refused.error().what;
    EXPECT_EQ(pool_total(pool), 100u);
    release_hugepages(40, folder.path());
    EXPECT_EQ(pool_total(pool), 60u);
    release_hugepages(1'000, folder.path());
    EXPECT_EQ(pool_total(pool), 0u);
    EXPECT_EQ(reserve_hugepages(512, folder.path() / "nowhere").error().code, Errc::Unsupported);
}

}  // namespace hugepages_test
}  // namespace penstock::drivers
