// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/scalar.hpp"

#include <gtest/gtest.h>

namespace penstock::manifest {
namespace scalar_test {

struct Case {
    const char* text;
    Value::Kind kind;
    int64_t integer = 0;
    bool boolean = false;
};

class PlainScalar : public testing::TestWithParam<Case> {};

TEST_P(PlainScalar, IsTypedAsKubectlTypesIt_GEN003) {
    const Scalar scalar = resolve_plain(GetParam().text);
    EXPECT_EQ(scalar.kind, GetParam().kind) << GetParam().text;
    EXPECT_EQ(scalar.integer, GetParam().integer) << GetParam().text;
    EXPECT_EQ(scalar.boolean, GetParam().boolean) << GetParam().text;
}

using enum Value::Kind;
INSTANTIATE_TEST_SUITE_P(
    Table, PlainScalar,
    testing::Values(Case{"", Null}, Case{"~", Null}, Case{"null", Null}, Case{"nULL", String},
                    Case{"true", Boolean, 0, true}, Case{"yes", Boolean, 0, true}, Case{"Off", Boolean},
                    Case{"n", Boolean}, Case{"tRue", String}, Case{"80", Integer, 80},
                    Case{"-1", Integer, -1}, Case{"+5", Integer, 5}, Case{"0", Integer, 0},
                    Case{"1_000", Integer, 1000}, Case{"0x1f", Integer, 31}, Case{"0o17", Integer, 15},
                    Case{"017", Integer, 15}, Case{"0b101", Integer, 5},
                    Case{"9223372036854775807", Integer, INT64_MAX},
                    Case{"-9223372036854775808", Integer, INT64_MIN}, Case{"9223372036854775808", Float},
                    Case{"-", String}, Case{"+", String}, Case{"--1", String}, Case{"-+1", String},
                    Case{"0x", String}, Case{"08", Float}, Case{"1e3", Float}, Case{"80.0", Float},
                    Case{".5", Float}, Case{"5.", Float}, Case{".", String}, Case{".inf", Float},
                    Case{"-.inf", Float}, Case{"e", String}, Case{"1e", String}, Case{"80.11.12.10", String},
                    Case{"::1", String}, Case{"10.0.0.0/8", String}, Case{"1:30", String},
                    Case{"2026-01-01T00:00:00Z", String}, Case{"web", String}));

}  // namespace scalar_test
}  // namespace penstock::manifest
