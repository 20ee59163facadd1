// SPDX-License-Identifier: Apache-2.0
// Compares two frames. If they differ, reports the first differing byte and prints both as scapy lines.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/packet_builder.hpp"

namespace penstock::test {

// EXPECT_TRUE(same_frame(actual, expected))
[[nodiscard]] inline testing::AssertionResult same_frame(ByteView actual, ByteView expected) {
    if (std::equal(actual.begin(), actual.end(), expected.begin(), expected.end())) {
        return testing::AssertionSuccess();
    }
    const auto [at, other] = std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end());
    return testing::AssertionFailure()
           << "frames differ from byte " << (at - actual.begin()) << " on (" << actual.size()
           << " bytes, expected " << expected.size() << ")\nactual   = " << to_scapy(actual)
           << "\nexpected = " << to_scapy(expected);
}

}  // namespace penstock::test
