// SPDX-License-Identifier: Apache-2.0
// Base64 of kubeconfig fields.
#include "control/kube/client/base64.hpp"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.hpp"

namespace penstock::kube {
namespace base64_test {

TEST(Base64, RoundTripsAndRefusesWhatIsNone) {
    std::string bytes;
    for (int length = 0; length < 70; ++length) {
        EXPECT_EQ(base64_decoded(base64_encoded(bytes)), bytes);
        bytes.push_back(static_cast<char>(length * 37));
    }
    EXPECT_EQ(base64_encoded("penstock"), "cGVuc3RvY2s=");
    EXPECT_EQ(base64_decoded("cGVu\nc3Rv\r\nY2s="), "penstock");
    for (const char* broken : {"c", "cGVuc3RvY2s", "cGVuc3RvY2s==", "cG=u", "c*==", "====", "-_-_"}) {
        EXPECT_EQ(base64_decoded(broken), std::nullopt) << broken;
    }
}

}  // namespace base64_test
}  // namespace penstock::kube
