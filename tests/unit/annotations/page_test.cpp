// SPDX-License-Identifier: Apache-2.0
// The page docs/annotations.md matches the table.
#include "control/annotations/page.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "control/annotations/refused.hpp"

namespace penstock::annotations {
namespace page_test {

TEST(AnnotationsPage, IsWhatTheTableSays_ANNG7) {
    std::ifstream page(PENSTOCK_ANNOTATIONS_PAGE);
    std::stringstream written;
    written << page.rdbuf();
    EXPECT_EQ(written.str(), page_text())
        << "to write it anew, in the build directory: ninja control/annotations/annotations-page && "
           "control/annotations/annotations-page > "
        << PENSTOCK_ANNOTATIONS_PAGE;
}

TEST(AnnotationsPage, NamesEveryKey_ANNG7) {
    const std::string page = page_text();
    for (const SettingSpec& spec : specs()) {
        for (const Spelling& spelling : spec.spellings) {
            EXPECT_NE(page.find("`" + std::string(spelling.key) + "`"), std::string::npos) << spelling.key;
        }
    }
    for (const RefusedKey& refused : refused_keys()) {
        EXPECT_NE(page.find("`" + std::string(refused.key) + "`"), std::string::npos) << refused.key;
    }
}

}  // namespace page_test
}  // namespace penstock::annotations
