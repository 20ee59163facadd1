// SPDX-License-Identifier: Apache-2.0
// Folders with table files: what a process writes, the next one reads; a file that it cannot use is named and
// set aside, and a folder that it cannot use is refused by name.
#include "control/gateway/tables/table_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/conn/table_description.hpp"

namespace penstock::gateway {
namespace table_folder_test {

namespace fs = std::filesystem;

const TableFileSizes kSizes{
    .workers = 2, .table_bytes = 64 * 1024, .affinity_bytes = 4096, .tables = conn::describe_tables(512)};
constexpr const char* kBoot = "0a1b2c3d-0000-1111-2222-333344445555";

class TableFolderTest : public testing::Test {
 protected:
    TableFolderTest() {
        std::string name = "/dev/shm/penstock-test-XXXXXX";
        PENSTOCK_CHECK(::mkdtemp(name.data()) != nullptr);
        base_ = name;
        path_ = base_ / "tables";
    }
    ~TableFolderTest() override { fs::remove_all(base_); }

    [[nodiscard]] TableFolder folder() const {
        auto opened = TableFolder::open(path_);
        PENSTOCK_CHECK(opened.has_value());
        return std::move(*opened);
    }
    // A file in force, as a process leaves it.
    void leave_file(uint64_t generation, const std::string& boot = kBoot) const {
        auto file = folder().add(generation, kSizes);
        PENSTOCK_CHECK(file.has_value());
        fill(*file, boot);
    }
    static void fill(TableFile& file, const std::string& boot = kBoot) {
        std::ranges::fill(file.table(0), std::byte{0xa0});
        std::ranges::fill(file.table(1), std::byte{0xa1});
        std::ranges::fill(file.affinity(), std::byte{0xaf});
        const std::vector<uint8_t> key{1, 2, 3};
        file.put_in_force(
            {.tsc_hz = 2'000'000'000, .secret = {5, 6}, .rss_key = key, .snat_ports = {1024, 2047}}, boot);
    }
    // Changes the bytes of the only file of this generation.
    void patch(uint64_t generation, size_t at, const std::vector<uint8_t>& bytes) const {
        std::fstream file(path_ / ("tables." + std::to_string(generation)),
                          std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(at));
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    // Changes the header or the description, and makes both checksums right again.
    void reseal(
        uint64_t generation, const std::function<void(TableFileHeader&)>& change,
        const std::function<void(TableFileDescription&)>& change_description = [](auto&) {}) const {
        std::fstream file(path_ / ("tables." + std::to_string(generation)),
                          std::ios::in | std::ios::out | std::ios::binary);
        TableFileHeader header;
        file.read(reinterpret_cast<char*>(&header), sizeof(header));
        change(header);
        header.checksum = checksum_of(header);
        file.seekp(0);
        file.write(reinterpret_cast<const char*>(&header), sizeof(header));
        TableFileDescription description;
        file.seekg(kDescriptionAt);
        file.read(reinterpret_cast<char*>(&description), sizeof(description));
        change_description(description);
        description.checksum = checksum_of(description, header);
        file.seekp(kDescriptionAt);
        file.write(reinterpret_cast<const char*>(&description), sizeof(description));
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& entry : fs::directory_iterator(path_)) {
            out.push_back(entry.path().filename());
        }
        std::ranges::sort(out);
        return out;
    }
    using Names = std::vector<std::string>;

    fs::path base_, path_;
};

TEST_F(TableFolderTest, TheNextProcessReadsWhatThisOneLeft) {
    const NamedService web{.key = {"default", "web", "", Protocol::Tcp}, .uid = "u", .affinity_owner = {}};
    const NamedEndpoint pod{
        .service = {}, .endpoint = EndpointId{4}, .stay = 1, .port = 80, .address = IpAddr::v4(10, 0, 0, 1)};
    {
        auto file = folder().add(1, kSizes);
        ASSERT_TRUE(file) << file.error().what;
        ASSERT_TRUE(file->note(ServiceId{65'535}, web));
        ASSERT_TRUE(file->note(BackendId{1'048'575}, pod));
        fill(*file);
        ASSERT_TRUE(file->note(ServiceId{2}, web));  // also while it is in force
    }
    const auto found = folder().look(kBoot);
    ASSERT_TRUE(found.newest);
    EXPECT_TRUE(found.refused.empty());
    EXPECT_EQ(found.generation, 1U);
    const FormerTableFile& former = *found.newest;
    EXPECT_EQ(former.header().workers, 2U);
    EXPECT_EQ(former.header().secret.k1, 6U);
    EXPECT_EQ(former.header().snat_ports, (nat::PortRange{1024, 2047}));
    EXPECT_EQ(former.header().tsc_hz, 2'000'000'000U);
    EXPECT_EQ(std::vector(former.rss_key().begin(), former.rss_key().end()), (std::vector<uint8_t>{1, 2, 3}));
    for (const auto& [bytes, value, size] : {std::tuple{former.table(0), 0xa0, size_t{64 * 1024}},
                                             std::tuple{former.table(1), 0xa1, size_t{64 * 1024}},
                                             std::tuple{former.affinity(), 0xaf, size_t{4096}}}) {
        EXPECT_EQ(bytes.size(), size);
        EXPECT_TRUE(std::ranges::all_of(bytes, [&](std::byte byte) { return byte == std::byte(value); }));
    }
    const auto services = former.services();
    ASSERT_TRUE(services);
    ASSERT_EQ(services->size(), 65'536U);
    EXPECT_EQ(read_record(ServiceId{2}, (*services)[2]), web);
    EXPECT_EQ(read_record(ServiceId{65'535}, (*services)[65'535]), web);
    EXPECT_FALSE(read_record(ServiceId{3}, (*services)[3]));
    const auto endpoints = former.endpoints();
    ASSERT_TRUE(endpoints);
    EXPECT_EQ(read_record(BackendId{1'048'575}, endpoints->back()), pod);
}

TEST_F(TableFolderTest, RecordsTakeMemoryOnlyAsFarAsTheyAreUsed) {
    auto file = folder().add(1, kSizes);
    ASSERT_TRUE(file);
    const auto blocks = [&] {
        struct stat facts{};
        PENSTOCK_CHECK(stat(file->path().c_str(), &facts) == 0);
        return static_cast<uint64_t>(facts.st_blocks) * 512;
    };
    EXPECT_LT(blocks(), 200U * 1024);
    ASSERT_TRUE(
        file->note(ServiceId{0}, {.key = {"a", "b", "", Protocol::Tcp}, .uid = {}, .affinity_owner = {}}));
    EXPECT_LT(blocks(), 600U * 1024);
    EXPECT_GT(file->bytes(), 40U << 20);
}

TEST_F(TableFolderTest, AForgottenEndpointHasNoRecord) {
    {
        auto file = folder().add(1, kSizes);
        ASSERT_TRUE(file->note(
            BackendId{0}, NamedEndpoint{.service = ServiceId{1}, .endpoint = EndpointId{1}, .address = {}}));
        file->forget(BackendId{0});
        file->forget(BackendId{700'000});  // never noted
        fill(*file);
    }
    EXPECT_FALSE(read_record(BackendId{0}, folder().look(kBoot).newest->endpoints()->front()));
}

TEST_F(TableFolderTest, AFileThatIsNotInForceIsRemovedAndTheOneBeforeItStays) {
    leave_file(1);
    {
        auto unfinished = folder().add(2, kSizes);
    }
    const auto found = folder().look(kBoot);
    ASSERT_TRUE(found.newest);
    EXPECT_EQ(found.newest->header().generation, 1U);
    ASSERT_EQ(found.refused.size(), 1U);
    EXPECT_EQ(found.refused[0].reason, TableRefusal::NotFinished);
    EXPECT_EQ(found.generation, 2U);
    EXPECT_EQ(names(), (Names{"tables.1"}));
}

TEST_F(TableFolderTest, OfTwoFilesInForceTheNewerOneCounts) {
    leave_file(9);
    leave_file(10);
    const auto found = folder().look(kBoot);
    EXPECT_EQ(found.newest->header().generation, 10U);
    EXPECT_TRUE(found.refused.empty());
    EXPECT_EQ(names(), (Names{"tables.10"}));
}

TEST_F(TableFolderTest, AFileOfAnotherBootIsRemoved) {
    leave_file(1, "ffffffff-0000-1111-2222-333344445555");
    const auto found = folder().look(kBoot);
    EXPECT_FALSE(found.newest);
    ASSERT_EQ(found.refused.size(), 1U);
    EXPECT_EQ(found.refused[0].reason, TableRefusal::OtherBoot);
    EXPECT_TRUE(found.refused[0].is_removed);
    EXPECT_EQ(names(), Names{});
}

TEST_F(TableFolderTest, AFileOfAnUnknownBootIsNeverUsed) {
    leave_file(1, "");
    EXPECT_EQ(folder().look("").refused.at(0).reason, TableRefusal::OtherBoot);
}

TEST_F(TableFolderTest, TablesOfAnotherLayoutAreReadByTheirDescription) {
    leave_file(1);
    EXPECT_FALSE(folder().look(kBoot).newest->layout());
    reseal(
        1, [](auto& header) { header.layout ^= 1; },
        [](auto& description) { description.tables.version = 7; });
    const auto found = folder().look(kBoot);
    ASSERT_TRUE(found.newest);
    ASSERT_TRUE(found.newest->layout());
    EXPECT_EQ(found.newest->layout()->version, 7U);
    EXPECT_EQ(found.newest->layout()->fields, kSizes.tables.fields);
    EXPECT_EQ(found.newest->affinity().size(), kSizes.affinity_bytes);
}

TEST_F(TableFolderTest, AnAffinityTableOfAnotherLayoutIsNotRead) {
    leave_file(1);
    reseal(1, [](auto& header) { header.layout ^= 1; }, [](auto& description) { description.affinity ^= 1; });
    const auto found = folder().look(kBoot);
    ASSERT_TRUE(found.newest);
    EXPECT_FALSE(found.newest->has_known_affinity());
    EXPECT_TRUE(found.newest->affinity().empty());
    EXPECT_EQ(found.newest->table(1).size(), kSizes.table_bytes);
}

TEST_F(TableFolderTest, ALayoutThatThisBuildCannotReadIsNamed) {
    using Description = TableFileDescription;
    const struct {
        const char* name;
        std::function<void(Description&)> change;
        const char* why;
    } cases[] = {
        {"none", [](Description& description) { description = {.magic = 0}; }, "and does not describe it"},
        {"format", [](Description& description) { ++description.format; }, "described in format 2"},
        {"size", [](Description& description) { description.bytes = 8; }, "described in format 1"},
        {"records", [](Description& description) { description.records ^= 1; }, "names have another one too"},
        {"meaning", [](Description& description) { ++description.tables.meaning; }, "meaning 2"},
        {"field", [](Description& description) { description.tables.fields[0].bits = 33; },
         "field Generation has 33 bits; this build has 32"},
        {"units", [](Description& description) { description.tables.units = 4'096; },
         "do not lie in a table of 65536 bytes"},
    };
    for (const auto& [name, change, why] : cases) {
        leave_file(4);
        reseal(4, [](auto& header) { header.layout ^= 1; }, change);
        const auto found = folder().look(kBoot);
        ASSERT_EQ(found.refused.size(), 1U) << name;
        EXPECT_EQ(found.refused[0].reason, TableRefusal::OtherLayout) << name;
        EXPECT_NE(found.refused[0].why.find(why), std::string::npos) << name << ": " << found.refused[0].why;
        fs::remove_all(path_);
    }
    leave_file(4);
    reseal(4, [](auto& header) { header.layout ^= 1; });
    patch(4, kDescriptionAt + 40, {0x5a});
    EXPECT_EQ(folder().look(kBoot).refused.at(0).reason, TableRefusal::Damaged) << "its checksum is wrong";
}

struct Damage {
    const char* name;
    TableRefusal reason;
    std::function<void(TableFileHeader&)> change;
};

TEST_F(TableFolderTest, AFileThatCannotBeUsedIsSetAsideByItsReason) {
    const std::vector<Damage> kDamages{
        {"format", TableRefusal::OtherFormat, [](auto& header) { ++header.format; }},
        {"magic", TableRefusal::Damaged, [](auto& header) { ++header.magic; }},
        {"no workers", TableRefusal::Damaged, [](auto& header) { header.workers = 0; }},
        {"workers", TableRefusal::Damaged, [](auto& header) { header.workers = 65; }},
        {"more workers", TableRefusal::Damaged, [](auto& header) { header.workers = 3; }},
        {"table", TableRefusal::Damaged, [](auto& header) { header.table_bytes += 4096; }},
        {"odd table", TableRefusal::Damaged,
         [](auto& header) { header = laid_out(header, {2, 64 * 1024 - 8, 4096}); }},
        {"huge table", TableRefusal::Damaged,
         [](auto& header) { header = laid_out(header, {64, uint64_t{1} << 60, 4096}); }},
        {"affinity", TableRefusal::Damaged, [](auto& header) { header.affinity_at += 4096; }},
        {"overlap", TableRefusal::Damaged, [](auto& header) { header.endpoints_at = header.services_at; }},
        {"RSS key", TableRefusal::Damaged, [](auto& header) { header.rss_key_bytes = 53; }},
        {"generation", TableRefusal::Damaged, [](auto& header) { header.generation = 77; }},
        {"too small", TableRefusal::TooSmall,
         [](auto& header) { header = laid_out(header, {3, 64 * 1024, 4096}); }},
    };
    for (const Damage& damage : kDamages) {
        leave_file(4);
        reseal(4, damage.change);
        const auto found = folder().look(kBoot);
        EXPECT_FALSE(found.newest) << damage.name;
        ASSERT_EQ(found.refused.size(), 1U) << damage.name;
        EXPECT_EQ(found.refused[0].reason, damage.reason) << damage.name << ": " << found.refused[0].why;
        EXPECT_EQ(found.refused[0].file, "tables.4");
        const std::string aside = "refused.4." + std::string(to_string(damage.reason));
        EXPECT_EQ(names(), Names{aside}) << damage.name;
        EXPECT_EQ(found.generation, 4U);
        fs::remove(path_ / aside);
    }
}

TEST_F(TableFolderTest, AChangedByteOfTheHeaderIsFound) {
    for (const size_t at : {0U, 24U, 80U, 100U, 200U, 223U}) {
        leave_file(1);
        patch(1, at, {0x5a});
        const auto found = folder().look(kBoot);
        EXPECT_FALSE(found.newest) << at;
        fs::remove_all(path_);
    }
}

TEST_F(TableFolderTest, ATruncatedFileIsTooSmall) {
    for (const uint64_t length : {0UL, 100UL, 4096UL, 1UL << 20}) {
        leave_file(1);
        fs::resize_file(path_ / "tables.1", length);
        const auto found = folder().look(kBoot);
        EXPECT_EQ(found.refused.at(0).reason, TableRefusal::TooSmall) << length;
        fs::remove_all(path_);
    }
}

TEST_F(TableFolderTest, AFileWithHolesForTablesIsTooSmall) {
    leave_file(1);
    const auto length = fs::file_size(path_ / "tables.1");
    fs::resize_file(path_ / "tables.1", 8192);
    fs::resize_file(path_ / "tables.1", length);
    EXPECT_EQ(folder().look(kBoot).refused.at(0).reason, TableRefusal::TooSmall);
}

TEST_F(TableFolderTest, CountsOfRecordsThatAreTooHighAreCut) {
    leave_file(1);
    patch(1, kProgressAt + 4, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
    const auto found = folder().look(kBoot);
    ASSERT_TRUE(found.newest);
    EXPECT_EQ(found.newest->services()->size(), limits::kServicesMax);
    EXPECT_EQ(found.newest->endpoints()->size(), limits::kBackendsMax);
}

TEST_F(TableFolderTest, AFileOfOthersOrNoFileAtAllIsSetAside) {
    const std::vector<std::function<void(const fs::path&)>> kMade{
        [&](const fs::path& file) {
            leave_file(1);
            chmod(file.c_str(), 0640);
        },
        [&](const fs::path& file) {
            leave_file(1);
            fs::create_hard_link(file, base_ / "another-name");
        },
        [&](const fs::path& file) {
            leave_file(1);
            fs::rename(file, base_ / "elsewhere");
            fs::create_symlink(base_ / "elsewhere", file);
        },
        [&](const fs::path& file) { PENSTOCK_CHECK(mkfifo(file.c_str(), 0600) == 0); },
        [&](const fs::path& file) { fs::create_directory(file); },
    };
    for (size_t i = 0; i < kMade.size(); ++i) {
        {
            (void)folder();
        }
        kMade[i](path_ / "tables.1");
        const auto found = folder().look(kBoot);
        EXPECT_FALSE(found.newest) << i;
        EXPECT_EQ(found.refused.at(0).reason, TableRefusal::OtherOwner) << i;
        fs::remove_all(path_);
        fs::remove(base_ / "another-name");
        fs::remove(base_ / "elsewhere");
    }
}

TEST_F(TableFolderTest, FilesThatWereSetAsideDoNotPileUp) {
    for (uint64_t generation = 1; generation <= 5; ++generation) {
        leave_file(generation);
        folder().set_aside("tables." + std::to_string(generation), TableRefusal::OtherLayout);
    }
    EXPECT_EQ(names(), (Names{"refused.4.other_layout", "refused.5.other_layout"}));
    EXPECT_EQ(folder().look(kBoot).generation, 5U);
}

TEST_F(TableFolderTest, OtherFilesOfTheFolderAreLeftAlone) {
    {
        (void)folder();
    }
    for (const char* name : {"tables.", "tables.x", "tables.1.old", "tables.99999999999999999999", "notes"}) {
        std::ofstream(path_ / name) << "x";
    }
    const auto found = folder().look(kBoot);
    EXPECT_TRUE(found.refused.empty());
    EXPECT_EQ(found.generation, 0U);
    EXPECT_EQ(names().size(), 5U);
}

TEST_F(TableFolderTest, AFolderHasOneOwner) {
    auto first = TableFolder::open(path_);
    ASSERT_TRUE(first) << first.error().what;
    const auto second = TableFolder::open(path_);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    EXPECT_EQ(second.error().what, "table folder " + path_.string() + " is in use by another process");
}

TEST_F(TableFolderTest, AFolderOpenToOthersIsRefused) {
    fs::create_directory(path_);
    chmod(path_.c_str(), 0755);
    const auto opened = TableFolder::open(path_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::PermissionDenied);
    EXPECT_NE(opened.error().what.find("mode 0700"), std::string::npos);
}

TEST_F(TableFolderTest, AFolderOnADiskIsRefused) {
    const auto opened = TableFolder::open("/proc/self");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().what.find("/proc/self"), std::string::npos);
}

TEST_F(TableFolderTest, AFileThatDoesNotFitLeavesNothing) {
    const TableFolder opened = folder();
    // More than the kernel can have, whatever the size of /dev/shm.
    const auto file = opened.add(1, {.workers = 64, .table_bytes = uint64_t{1} << 40, .affinity_bytes = 0});
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, Errc::Exhausted) << file.error().what;
    EXPECT_NE(file.error().what.find("tables.1"), std::string::npos);
    EXPECT_EQ(names(), Names{});
}

}  // namespace table_folder_test
}  // namespace penstock::gateway
