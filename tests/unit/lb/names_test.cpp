// SPDX-License-Identifier: Apache-2.0
// Names of schedulers.
#include "dataplane/lb/names.hpp"

#include <gtest/gtest.h>

#include "dataplane/lb/service.hpp"

namespace penstock::lb {
namespace names_test {

TEST(SchedulerNames, AreReadInAnyCase_SCHED001) {
    for (const auto& [text, kind] : {std::pair{"rr", SchedulerKind::RoundRobin},
                                     {"RR", SchedulerKind::RoundRobin},
                                     {"random", SchedulerKind::Random},
                                     {"Random", SchedulerKind::Random},
                                     {"mh", SchedulerKind::Maglev},
                                     {"Mh", SchedulerKind::Maglev}}) {
        const Result<SchedulerKind> parsed = parse_scheduler(text);
        ASSERT_TRUE(parsed.has_value()) << text;
        EXPECT_EQ(*parsed, kind) << text;
    }
    for (const SchedulerKind kind : kSchedulerKinds) {
        EXPECT_EQ(parse_scheduler(to_string(kind)).value(), kind) << to_string(kind);
    }
    for (const char* text : {"", "r", "rrr", "rr ", "maglevv", "fastest"}) {
        const Result<SchedulerKind> parsed = parse_scheduler(text);
        ASSERT_FALSE(parsed.has_value()) << text;
        EXPECT_EQ(parsed.error().code, Errc::InvalidArgument);
        EXPECT_EQ(parsed.error().what,
                  "unknown scheduler \"" + std::string(text) +
                      "\" (use one of rr, wrr, lc, wlc, sh, dh, sed, nq, random, mh, p2c)");
    }
}

}  // namespace names_test
}  // namespace penstock::lb
