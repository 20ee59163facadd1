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
    const auto enough = reserve_hugepages(512, HugepageSize::Any, folder.path());
    ASSERT_TRUE(enough) << enough.error().what;
    EXPECT_EQ(*enough, 0u);
    EXPECT_EQ(pool_total(small), 300u);
    // Reserved pages do not count, 1 GB pages do.
    write_pool(small, 300, 280, 100);
    write_pool(folder.path() / "hugepages-1048576kB", 1, 1, 0);
    EXPECT_EQ(reserve_hugepages(512, HugepageSize::Any, folder.path()).value_or(99), 0u);
}

TEST(Hugepages, ANamedSizeCountsOnlyItsOwnPages) {
    const test::ScratchFolder folder;
    const fs::path small = folder.path() / "hugepages-2048kB";
    const fs::path large = folder.path() / "hugepages-1048576kB";
    write_pool(small, 1'000, 1'000, 0);
    write_pool(large, 4, 3, 1);
    EXPECT_EQ(available_pages(HugepageSize::Small2M, folder.path()), 1'000u);
    EXPECT_EQ(available_pages(HugepageSize::Large1G, folder.path()), 2u);
    EXPECT_EQ(reserve_hugepages(2'048, HugepageSize::Large1G, folder.path()).value_or(99), 0u);
    const auto refused = reserve_hugepages(2'049, HugepageSize::Large1G, folder.path());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "2 of 3 1 GB pages are free, and the kernel could allocate only 1 more");
    EXPECT_EQ(pool_total(large), 4u);
    EXPECT_EQ(pool_total(small), 1'000u);
    fs::remove_all(small);
    const auto absent = reserve_hugepages(2, HugepageSize::Small2M, folder.path());
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().code, Errc::Unsupported);
    EXPECT_EQ(absent.error().what, "this kernel offers no 2 MB pages");
    release_hugepages(3, HugepageSize::Large1G, folder.path());
    EXPECT_EQ(pool_total(large), 1u);
}

TEST(Hugepages, MemoryIsRoundedToWholePagesOfANamedSize) {
    EXPECT_EQ(whole_pages_mb(513, HugepageSize::Any), 513u);
    EXPECT_EQ(whole_pages_mb(513, HugepageSize::Small2M), 514u);
    EXPECT_EQ(whole_pages_mb(513, HugepageSize::Large1G), 1'024u);
    EXPECT_EQ(whole_pages_mb(1'024, HugepageSize::Large1G), 1'024u);
}

TEST(Hugepages, AFolderOnAnotherFileSystemIsNoHugetlbfs) {
    const test::ScratchFolder folder;
    const fs::path mounts = folder.path() / "mounts";
    std::ofstream(mounts) << "none " << folder.path().string() << " hugetlbfs rw,pagesize=2M 0 0\n"
                          << "none / ext4 rw 0 0\n";
    EXPECT_EQ(hugetlbfs_of(HugepageSize::Small2M, folder.path(), mounts), "");
    EXPECT_EQ(hugetlbfs_of(HugepageSize::Large1G, folder.path() / "nowhere", folder.path() / "no mounts"),
              "");
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
    const auto refused = reserve_hugepages(512, HugepageSize::Any, folder.path());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::Exhausted);
    EXPECT_NE(refused.error().what.find("60 of 256 pages are free"), std::string::npos)
        << refused.error().what;
    EXPECT_EQ(pool_total(pool), 100u);
    release_hugepages(40, HugepageSize::Any, folder.path());
    EXPECT_EQ(pool_total(pool), 60u);
    release_hugepages(1'000, HugepageSize::Any, folder.path());
    EXPECT_EQ(pool_total(pool), 0u);
    EXPECT_EQ(reserve_hugepages(512, HugepageSize::Any, folder.path() / "nowhere").error().code,
              Errc::Unsupported);
}

}  // namespace hugepages_test
}  // namespace penstock::drivers
