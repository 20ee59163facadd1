// SPDX-License-Identifier: Apache-2.0
// One file for each sink and prefix, within the limit of their number.
#include "control/flow_records/log_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/support/scratch_folder.hpp"
#include "tests/unit/flow_records/events.hpp"

namespace penstock::flow_records {
namespace log_folder_test {

constexpr int64_t kNow = 1'764'298'800;  // the begin of an hour

class LogFolderTest : public testing::Test {
 protected:
    size_t lines(const std::string& name) const {
        std::ifstream file(folder_.path() / name, std::ios::binary);
        return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
    }
    test::ScratchFolder folder_;
};

TEST_F(LogFolderTest, SinkAndPrefixSelectTheFile_ANN12) {
    LogFolder log(folder_.path().string(), {});
    ServiceFacts named = web();
    named.folder = "audit/team-a/web";
    const ServiceFacts plain = web();
    const auto record = flow();
    ASSERT_TRUE(log.add({record, plain}, kOrigin));
    ASSERT_TRUE(log.add({record, named}, kOrigin));
    ASSERT_TRUE(log.add({record, named}, kOrigin));
    const LogFolder::Written written = log.write(kNow);
    EXPECT_EQ(written.records, 3U);
    EXPECT_EQ(written.lost, 0U);
    EXPECT_EQ(written.error, "");
    EXPECT_EQ(lines("default/flows.jsonl"), 1U);
    EXPECT_EQ(lines("audit/team-a/web/flows.jsonl"), 2U);
    EXPECT_EQ(log.write(kNow).records, 0U);
}

// Services of one file may request different intervals: the shortest one that occurs.
TEST_F(LogFolderTest, TheShortestIntervalRotates_ANN11) {
    LogFolder log(folder_.path().string(), {});
    ServiceFacts often = web();
    often.interval_min = 5;
    const ServiceFacts seldom = web();
    const auto record = flow();
    for (const int64_t now : {kNow, kNow + 299, kNow + 300}) {
        ASSERT_TRUE(log.add({record, seldom}, kOrigin));
        ASSERT_TRUE(log.add({record, often}, kOrigin));
        EXPECT_EQ(log.write(now).records, 2U);
    }
    EXPECT_EQ(lines("default/flows.jsonl.1"), 4U);
    EXPECT_EQ(lines("default/flows.jsonl"), 2U);
}

TEST_F(LogFolderTest, AFileTooManyIsRefused) {
    LogFolder log(folder_.path().string(), {});
    const auto record = flow();
    ServiceFacts service = web();
    for (size_t n = 0; n < LogFolder::kFilesMax; ++n) {
        service.folder = "sink-" + std::to_string(n);
        ASSERT_TRUE(log.add({record, service}, kOrigin));
    }
    service.folder = "one-more";
    EXPECT_FALSE(log.add({record, service}, kOrigin));
    service.folder = "sink-7";
    EXPECT_TRUE(log.add({record, service}, kOrigin));
}

TEST_F(LogFolderTest, AFaultOfOneFileConcernsNoOther) {
    folder_.write("broken", "a file, where a folder is needed");
    LogFolder log(folder_.path().string(), {});
    const auto record = flow();
    ServiceFacts broken = web();
    broken.folder = "broken";
    const ServiceFacts plain = web();
    ASSERT_TRUE(log.add({record, broken}, kOrigin));
    ASSERT_TRUE(log.add({record, plain}, kOrigin));
    const LogFolder::Written written = log.write(kNow);
    EXPECT_EQ(written.records, 1U);
    EXPECT_EQ(written.lost, 1U);
    EXPECT_NE(written.error.find("broken"), std::string::npos) << written.error;
}

}  // namespace log_folder_test
}  // namespace penstock::flow_records
