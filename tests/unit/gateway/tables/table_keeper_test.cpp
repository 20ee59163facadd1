// SPDX-License-Identifier: Apache-2.0
// The life of table files over several starts of a process, and the reasons why there is none.
#include "control/gateway/tables/table_keeper.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_description.hpp"
#include "dataplane/lb/affinity.hpp"
#include "drivers/eal/hugepages.hpp"

namespace penstock::gateway {
namespace table_keeper_test {

namespace fs = std::filesystem;

class TableKeeperTest : public testing::Test {
 protected:
    TableKeeperTest() {
        std::string name = "/dev/shm/penstock-test-XXXXXX";
        PENSTOCK_CHECK(::mkdtemp(name.data()) != nullptr);
        base_ = name;
        options_ = {.folder = base_ / "tables",
                    .state_file = "/somewhere/last-good.pb",
                    .workers = 2,
                    .connections = 1024,
                    .affinity_entries = 1024};
    }
    ~TableKeeperTest() override { fs::remove_all(base_); }

    [[nodiscard]] std::unique_ptr<TableKeeper> open() const {
        auto keeper = TableKeeper::open(options_);
        PENSTOCK_CHECK(keeper.has_value());
        return std::move(*keeper);
    }
    // A whole start; returns whether there was something to adopt.
    static bool start(TableKeeper& keeper, uint64_t secret, bool has_configuration = true) {
        const bool adopts = keeper.former(compiled_, ids_, has_configuration).has_value();
        const std::vector<uint8_t> key(40, static_cast<uint8_t>(secret));
        keeper.put_in_force({.tsc_hz = 1, .secret = {secret, 0}, .rss_key = key, .snat_ports = {}});
        keeper.forget_former();
        return adopts;
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& entry : fs::directory_iterator(options_.folder)) {
            out.push_back(entry.path().filename());
        }
        std::ranges::sort(out);
        return out;
    }
    using Names = std::vector<std::string>;

    static inline const Compiled compiled_;
    static inline const IdMap ids_{8, 8};
    fs::path base_;
    TableKeeperOptions options_;
};

TEST_F(TableKeeperTest, EachStartContinuesTheOneBefore) {
    for (uint64_t i = 1; i <= 3; ++i) {
        const auto keeper = open();
        EXPECT_EQ(keeper->status().file, (base_ / "tables" / ("tables." + std::to_string(i))).string());
        EXPECT_EQ(keeper->former_secret().has_value(), i > 1);
        if (i > 1) {
            EXPECT_EQ(keeper->former_secret()->k0, i - 1);
            EXPECT_EQ(keeper->former_rss_key(), std::vector<uint8_t>(40, static_cast<uint8_t>(i - 1)));
        }
        EXPECT_EQ(start(*keeper, i), i > 1);
        EXPECT_EQ(names(), Names{"tables." + std::to_string(i)});
        EXPECT_EQ(keeper->status().nothing_taken.empty(), i > 1);
    }
}

TEST_F(TableKeeperTest, AProcessThatEndsDuringItsStartChangesNothing) {
    {
        start(*open(), 1);
    }
    for (int i = 0; i < 3; ++i) {
        const auto keeper = open();
        EXPECT_TRUE(keeper->former(compiled_, ids_, true).has_value());
    }
    EXPECT_EQ(open()->former_secret()->k0, 1U);
}

TEST_F(TableKeeperTest, TheFormerTablesAreWhatTheProcessLeft) {
    const size_t bytes = conn::Table::memory_needed(1024);
    const size_t affinity = lb::AffinityTable::memory_needed(1024);
    {
        const auto keeper = open();
        std::ranges::fill(*keeper->memory("connections-1", bytes), std::byte{7});
        std::ranges::fill(*keeper->memory("affinity", affinity), std::byte{8});
        start(*keeper, 1);
    }
    options_.workers = 1;
    options_.connections = 4096;
    const auto keeper = open();
    const auto tables = keeper->former(compiled_, ids_, true);
    ASSERT_TRUE(tables);
    ASSERT_EQ(tables->connections.size(), 2U);
    EXPECT_EQ(tables->connections[1].size(), bytes);
    EXPECT_TRUE(
        std::ranges::all_of(tables->connections[0], [](std::byte byte) { return byte == std::byte{}; }));
    EXPECT_TRUE(
        std::ranges::all_of(tables->connections[1], [](std::byte byte) { return byte == std::byte{7}; }));
    EXPECT_TRUE(std::ranges::all_of(tables->affinity, [](std::byte byte) { return byte == std::byte{8}; }));
    EXPECT_TRUE(keeper->memory("connections-0", conn::Table::memory_needed(4096)));
    EXPECT_FALSE(keeper->memory("connections-1", bytes));  // one worker
    EXPECT_FALSE(keeper->memory("anything", 64));
}

TEST_F(TableKeeperTest, ATableOfAnotherLayoutComesWithItsDescription) {
    options_.connections = 1023;
    {
        start(*open(), 1);
    }
    EXPECT_FALSE(open()->former(compiled_, ids_, true)->layout);
    {
        std::fstream file(base_ / "tables" / "tables.1", std::ios::in | std::ios::out | std::ios::binary);
        TableFileHeader header;
        file.read(reinterpret_cast<char*>(&header), sizeof(header));
        header.layout ^= 1;
        header.checksum = checksum_of(header);
        const TableFileDescription description = description_for(conn::describe_tables(1024), header);
        file.seekp(0);
        file.write(reinterpret_cast<const char*>(&header), sizeof(header));
        file.seekp(kDescriptionAt);
        file.write(reinterpret_cast<const char*>(&description), sizeof(description));
    }
    const auto tables = open()->former(compiled_, ids_, true);
    ASSERT_TRUE(tables);
    EXPECT_EQ(tables->layout, conn::describe_tables(1024));
    EXPECT_FALSE(tables->affinity.empty());
}

TEST_F(TableKeeperTest, AnOddNumberOfConnectionsHasRoomForOneMore) {
    options_.connections = 1025;
    EXPECT_TRUE(open()->memory("connections-0", conn::Table::memory_needed(1026)));
}

TEST_F(TableKeeperTest, WithoutAConfigurationNothingIsAdoptedAndTheFileIsSetAside) {
    {
        start(*open(), 1);
    }
    const auto keeper = open();
    EXPECT_FALSE(start(*keeper, 2, false));
    EXPECT_EQ(keeper->status().nothing_taken, "there is no last good configuration");
    EXPECT_EQ(names(), (Names{"refused.1.no_configuration", "tables.2"}));
}

TEST_F(TableKeeperTest, WithoutAFileThereIsNoMemory) {
    for (const auto& [folder, state_file, why] :
         {std::tuple{"", "/s", "--table-dir off"},
          std::tuple{
              "/dev/shm/x", "",
              "--state-file none: without a last good configuration no connection can be taken over"}}) {
        options_.folder = folder;
        options_.state_file = state_file;
        const auto keeper = open();
        EXPECT_FALSE(keeper->has_file());
        EXPECT_EQ(keeper->table_bytes(), 0U);
        EXPECT_EQ(keeper->status().why, why);
        EXPECT_FALSE(start(*keeper, 1));
        keeper->write_names(compiled_);
    }
    EXPECT_FALSE(fs::exists("/dev/shm/x"));
}

TEST_F(TableKeeperTest, AFolderThatCannotBeUsedIsTheReason) {
    fs::create_directory(options_.folder);
    chmod(options_.folder.c_str(), 0777);
    const auto keeper = open();
    EXPECT_FALSE(keeper->has_file());
    EXPECT_NE(keeper->status().why.find("mode 0700"), std::string::npos) << keeper->status().why;
}

TEST_F(TableKeeperTest, TablesThatDoNotFitAreTheReason) {
    options_.workers = 64;
    options_.connections = 1U << 28;
    options_.affinity_entries = 1U << 26;
    const auto keeper = open();
    EXPECT_FALSE(keeper->has_file());
    EXPECT_NE(keeper->status().why.find("MB"), std::string::npos) << keeper->status().why;
    EXPECT_EQ(names(), Names{});
}

TEST_F(TableKeeperTest, AFolderOfALivingProcessEndsTheStart) {
    const auto first = open();
    const auto second = TableKeeper::open(options_);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    EXPECT_TRUE(second.error().what.starts_with("--table-dir: table folder ")) << second.error().what;
}

TEST_F(TableKeeperTest, ARefusedFileIsInTheStatus) {
    {
        start(*open(), 1);
    }
    fs::resize_file(fs::path(options_.folder) / "tables.1", 5000);
    const auto keeper = open();
    ASSERT_EQ(keeper->status().refused.size(), 1U);
    EXPECT_EQ(keeper->status().refused[0].reason, TableRefusal::TooSmall);
    EXPECT_EQ(keeper->status().nothing_taken, "no table file of a former process can be used");
    EXPECT_FALSE(start(*keeper, 2));
}

TEST_F(TableKeeperTest, GatewaysWithDifferentStateFilesHaveDifferentFolders) {
    const auto folders = [](const char* state_file) { return default_table_folders(state_file, "", "/t"); };
    EXPECT_EQ(folders("/var/lib/penstock/last-good.pb"), Names{"/t/penstock"});
    EXPECT_EQ(folders("/a").size(), 1U);
    EXPECT_TRUE(folders("/a")[0].starts_with("/t/penstock-"));
    EXPECT_NE(folders("/a"), folders("/b"));
    EXPECT_EQ(folders("/a"), folders("/a"));
    EXPECT_EQ(default_table_folders("/var/lib/penstock/last-good.pb", "/h", "/t"),
              (Names{"/h/penstock", "/t/penstock"}));
}

TEST_F(TableKeeperTest, AFileOfLargePagesNeedsNoMoreThanItsPages) {
    constexpr uint64_t kSmallPage = uint64_t{2} << 20, kLargePage = uint64_t{1} << 30;
    const uint64_t table = 300 << 20;
    const TableFileSizes sizes{.workers = 2, .table_bytes = table, .affinity_bytes = 0};
    EXPECT_EQ(hugetlbfs_megabytes(sizes, kSmallPage), 608U) << "the tables, and pages for records";
    EXPECT_EQ(hugetlbfs_megabytes(sizes, kLargePage), 1'024U) << "all in one page";
    EXPECT_EQ(hugetlbfs_megabytes({.workers = 2, .table_bytes = 2 * table, .affinity_bytes = 0}, kLargePage),
              2'048U);
}

TEST_F(TableKeeperTest, WithoutAFileSystemOfTheNamedSizeTheRemarkHasTheCommand) {
    options_.folder = "auto";
    options_.state_file = (fs::path(base_) / "last-good.pb").string();
    options_.hugepage_size = drivers::HugepageSize::Large1G;
    if (!drivers::hugetlbfs_of(drivers::HugepageSize::Large1G).empty()) {
        GTEST_SKIP() << "this machine has a hugetlbfs of 1 GB pages";
    }
    const auto keeper = open();
    EXPECT_EQ(keeper->status().remark,
              "no hugetlbfs with pages of 1 GB is mounted: mount -t hugetlbfs -o pagesize=1G none FOLDER");
    EXPECT_TRUE(keeper->status().file.starts_with("/dev/shm/penstock-")) << keeper->status().file;
    fs::remove_all(fs::path(keeper->status().file).parent_path());
}

}  // namespace table_keeper_test
}  // namespace penstock::gateway
