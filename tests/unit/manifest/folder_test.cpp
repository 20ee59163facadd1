// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/manifest/temporary_folder.hpp"

namespace penstock::manifest {
namespace folder_test {

using test::TemporaryFolder;

std::string service(const std::string& name, const std::string& port) {
    return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name +
           "}\nspec: {ports: [{port: " + port + "}]}\n";
}

// Current port of Service default/NAME in the folder; -1 if there is no such Service.
int64_t port_of(const Folder::Contents& contents, const std::string& name) {
    const auto found = contents.objects->services.find({"default", name});
    return found == contents.objects->services.end() ? -1 : found->second.ports.at(0).port;
}

class FolderTest : public testing::Test {
 protected:
    TemporaryFolder disk_;
    Folder folder_{disk_.path()};
};

TEST_F(FolderTest, JoinsFilesAndIgnoresWhatIsNoManifest) {
    disk_.write("a.yaml", service("a", "1"));
    disk_.write("b.yml", service("b", "2"));
    disk_.write("c.json", R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge-1"}})");
    disk_.write("notes.txt", "not: [yaml");
    disk_.write(".hidden.yaml", "not: [yaml");
    std::filesystem::create_directory(disk_.path() / "folder.yaml");
    const auto& contents = folder_.load();
    EXPECT_EQ(contents.problems, std::vector<Problem>{});
    EXPECT_EQ(contents.objects->services.size(), 2u);
    EXPECT_EQ(contents.objects->nodes.size(), 1u);
}

TEST_F(FolderTest, AnUnchangedFolderGivesTheVerySameObjects) {
    disk_.write("a.yaml", service("a", "1"));
    const auto first = folder_.load().objects;
    EXPECT_EQ(folder_.load().objects, first);
    disk_.write("a.yaml", "# a comment more\n" + service("a", "1"));
    EXPECT_EQ(folder_.load().objects, first);
}

TEST_F(FolderTest, ARewriteOfEqualSizeRightAfterAReadIsSeen) {
    for (int port = 1; port < 10; ++port) {
        disk_.write("a.yaml", service("a", std::to_string(port)));
        EXPECT_EQ(port_of(folder_.load(), "a"), port);
    }
}

TEST_F(FolderTest, WithdrawsWhatIsDeleted) {
    disk_.write("a.yaml", service("a", "1") + service("b", "2"));
    disk_.write("c.yaml", service("c", "3"));
    folder_.load();
    disk_.write("a.yaml", service("b", "2"));
    std::filesystem::remove(disk_.path() / "c.yaml");
    const auto& contents = folder_.load();
    EXPECT_EQ(port_of(contents, "a"), -1);
    EXPECT_EQ(port_of(contents, "b"), 2);
    EXPECT_EQ(port_of(contents, "c"), -1);
}

TEST_F(FolderTest, AQuarantinedObjectKeepsItsLastGoodVersionUntilAGoodOneComes_GEN003) {
    disk_.write("a.yaml", service("a", "1") + service("b", "2"));
    folder_.load();
    disk_.write("a.yaml", service("a", "\"1\"") + service("b", "3"));
    EXPECT_EQ(port_of(folder_.load(), "a"), 1);
    EXPECT_EQ(port_of(folder_.load(), "b"), 3);
    ASSERT_EQ(folder_.load().problems.size(), 1u);
    EXPECT_EQ(folder_.load().problems[0].object, "Service default/a");
    disk_.write("a.yaml", service("a", "4"));
    const auto& contents = folder_.load();
    EXPECT_EQ(port_of(contents, "a"), 4);
    EXPECT_TRUE(contents.problems.empty());
}

TEST_F(FolderTest, AnObjectThatWasNeverGoodIsNotThere_GEN003) {
    disk_.write("a.yaml", service("a", "\"1\"") + service("b", "2"));
    const auto& contents = folder_.load();
    EXPECT_EQ(port_of(contents, "a"), -1);
    EXPECT_EQ(port_of(contents, "b"), 2);
}

TEST_F(FolderTest, ADocumentThatCannotBeReadAtAllCostsNothingThatItsFileDefined_GEN001) {
    disk_.write("a.yaml", service("a", "1") + service("b", "2"));
    disk_.write("c.yaml", service("c", "3"));
    folder_.load();
    disk_.write("a.yaml", service("b", "20") + "---\nkind: [broken\n");
    std::filesystem::remove(disk_.path() / "c.yaml");
    const auto& contents = folder_.load();
    EXPECT_EQ(port_of(contents, "a"), 1) << "may be the broken one";
    EXPECT_EQ(port_of(contents, "b"), 20);
    EXPECT_EQ(port_of(contents, "c"), -1) << "its file has nothing to do with the broken one";
    disk_.write("a.yaml", service("b", "20"));
    EXPECT_EQ(port_of(folder_.load(), "a"), -1);
}

TEST_F(FolderTest, AnObjectThatMovedToAnotherFileIsNotHeldBackByTheBrokenOne) {
    disk_.write("a.yaml", service("a", "1"));
    folder_.load();
    disk_.write("a.yaml", "broken: [\n");
    disk_.write("b.yaml", service("a", "5"));
    EXPECT_EQ(port_of(folder_.load(), "a"), 5);
}

TEST_F(FolderTest, OfTwoDefinitionsTheFirstByFileNameCounts_GEN006) {
    disk_.write("b.yaml", service("a", "2"));
    disk_.write("a.yaml", service("a", "1"));
    const auto& contents = folder_.load();
    EXPECT_EQ(port_of(contents, "a"), 1);
    ASSERT_EQ(contents.problems.size(), 1u);
    EXPECT_EQ(contents.problems[0].to_string(),
              "b.yaml:2: Service default/a: defined twice; the definition at a.yaml:2 is used");
}

TEST_F(FolderTest, AMissingFolderIsUnknownAtFirstAndALostSourceLater_GEN012) {
    std::filesystem::remove(disk_.path());
    EXPECT_EQ(folder_.load().objects, nullptr);
    EXPECT_EQ(folder_.load().problems.size(), 1u);
    std::filesystem::create_directory(disk_.path());
    disk_.write("a.yaml", service("a", "1"));
    EXPECT_EQ(port_of(folder_.load(), "a"), 1);
    std::filesystem::remove_all(disk_.path());
    EXPECT_EQ(port_of(folder_.load(), "a"), 1);
}

TEST_F(FolderTest, AFileThatIsBeingWrittenStaysAsItWas) {
    disk_.write("a.yaml", service("a", "1"));
    folder_.load();
    disk_.write("a.yaml", "");
    EXPECT_EQ(port_of(folder_.load({"a.yaml"}), "a"), 1);
    EXPECT_EQ(port_of(folder_.load(), "a"), -1);
}

TEST_F(FolderTest, AnUnreadableFileKeepsItsObjects_GEN001) {
    disk_.write("a.yaml", service("a", "1"));
    folder_.load();
    disk_.write("a.yaml", std::string(9'000'000, '#'));
    const auto& contents = folder_.load();
    EXPECT_EQ(port_of(contents, "a"), 1);
    EXPECT_EQ(contents.problems.size(), 1u);
}

// An unmounted volume leaves an empty mount point.
TEST_F(FolderTest, AnEmptyFolderKeepsWhatItHad_GEN012) {
    disk_.write("a.yaml", service("a", "1"));
    folder_.load();
    std::filesystem::remove(disk_.path() / "a.yaml");
    disk_.write("notes.txt", "no manifest");
    const auto& contents = folder_.load();
    EXPECT_EQ(port_of(contents, "a"), 1);
    EXPECT_TRUE(contents.lost.starts_with("contains no manifest")) << contents.lost;
    ASSERT_EQ(contents.problems.size(), 1u);
    EXPECT_EQ(contents.problems[0].to_string(), disk_.path().string() + ": " + contents.lost);
    disk_.write("b.yaml", service("b", "2"));
    folder_.load();
    EXPECT_EQ(contents.lost, "");
    EXPECT_EQ(contents.problems, std::vector<Problem>{});
    EXPECT_EQ(port_of(contents, "a"), -1) << "a folder with a manifest is a statement";
    disk_.write("b.yaml", "# nothing is served any more\n");
    folder_.load();
    EXPECT_EQ(contents.lost, "");
    EXPECT_EQ(port_of(contents, "b"), -1);
    std::filesystem::remove(disk_.path() / "b.yaml");
    folder_.load();
    EXPECT_EQ(contents.lost, "") << "it had nothing to lose";
}

TEST_F(FolderTest, AnEmptyFolderIsUnknownAtFirst_GEN012) {
    EXPECT_EQ(folder_.load().objects, nullptr);
    EXPECT_NE(folder_.load().lost, "");
}

TEST_F(FolderTest, AFolderThatMayBeEmptyWithdrawsEverything) {
    Folder folder(disk_.path(), Folder::WhenEmpty::Withdraw);
    ASSERT_NE(folder.load().objects, nullptr);
    disk_.write("a.yaml", service("a", "1"));
    EXPECT_EQ(port_of(folder.load(), "a"), 1);
    std::filesystem::remove(disk_.path() / "a.yaml");
    EXPECT_EQ(port_of(folder.load(), "a"), -1);
    EXPECT_EQ(folder.load().lost, "");
}

TEST_F(FolderTest, ServicesAreAsOldAsTheirFirstReading_SVC018) {
    const auto created = [](const Folder::Contents& contents, const std::string& name) {
        return contents.objects->services.at({"default", name}).meta.creation_timestamp;
    };
    const Folder::Clock::time_point start =
        std::chrono::sys_days(std::chrono::year(2026) / 1 / 2) + std::chrono::microseconds(7);
    disk_.write("m.yaml", service("m", "1") + service("k", "1"));
    const auto& contents = folder_.load({}, start);
    EXPECT_EQ(created(contents, "m"), "2026-01-02T00:00:00.000007Z");
    EXPECT_EQ(created(contents, "k"), created(contents, "m")) << "then the name decides";
    disk_.write("a.yaml", service("a", "1"));
    folder_.load({}, start - std::chrono::hours(1));
    EXPECT_EQ(created(contents, "a"), "2026-01-02T00:00:00.000008Z")
        << "later, though the clock was set back";
    disk_.write("m.yaml", service("m", "2") + service("k", "1"));
    folder_.load({}, start + std::chrono::hours(1));
    EXPECT_EQ(created(contents, "m"), "2026-01-02T00:00:00.000007Z") << "an edit makes nothing younger";
    disk_.write("m.yaml", "broken: [\n");
    folder_.load({}, start + std::chrono::hours(2));
    disk_.write("m.yaml", service("m", "2"));
    folder_.load({}, start + std::chrono::hours(3));
    EXPECT_EQ(created(contents, "m"), "2026-01-02T00:00:00.000007Z") << "nor does a broken file";
    disk_.write("m.yaml",
                "apiVersion: v1\nkind: Service\nmetadata: {name: m, creationTimestamp: "
                "\"2020-01-01T00:00:00Z\"}\nspec: {ports: []}\n");
    folder_.load({}, start + std::chrono::hours(4));
    EXPECT_EQ(created(contents, "m"), "2020-01-01T00:00:00Z") << "what is written counts";
}

TEST_F(FolderTest, CountsWhatIsQuarantined_GEN003) {
    disk_.write("a.yaml", service("a", "1") + service("b", "2"));
    disk_.write("c.yaml", service("c", "3"));
    EXPECT_TRUE(folder_.load().quarantined.empty());
    disk_.write("a.yaml", service("a", "\"1\"") + service("b", "2"));
    disk_.write("c.yaml", "broken: [\n");
    const auto& contents = folder_.load();
    EXPECT_EQ(contents.quarantined, (std::map<ObjectKind, size_t>{{ObjectKind::Service, 2}}));
    disk_.write("a.yaml", service("a", "1"));
    disk_.write("c.yaml", service("c", "3"));
    folder_.load();
    EXPECT_TRUE(contents.quarantined.empty());
}

TEST_F(FolderTest, TakesASingleFile) {
    disk_.write("a.yaml", service("a", "1"));
    disk_.write("b.yaml", service("b", "2"));
    Folder single(disk_.path() / "b.yaml");
    EXPECT_EQ(port_of(single.load(), "a"), -1);
    EXPECT_EQ(port_of(single.load(), "b"), 2);
}

}  // namespace folder_test
}  // namespace penstock::manifest
