// Settings by annotation.
#include "control/semantics/annotations.hpp"

#include <gtest/gtest.h>

#include "control/semantics/text.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace {

constexpr const char* kNative = "penstock.io/scheduler";
constexpr const char* kKubeRouter = "kube-router.io/service.scheduler";
constexpr const char* kCilium = "service.cilium.io/lb-algorithm";
constexpr const char* kNoEndpoints = "penstock.io/no-endpoints-action";
constexpr lb::SchedulerKind kGlobal = lb::SchedulerKind::RoundRobin;

lb::SchedulerKind scheduler_of(const Annotations& annotations, lb::SchedulerKind otherwise, Notices& notices) {
    return settings_of(annotations, {.default_scheduler = otherwise}, notices).scheduler;
}

TEST(SchedulerAnnotation, Values_SCHED001_ANN26_ANNG1_ANNG2_ANNG3) {
    using Kind = lb::SchedulerKind;
    struct Row {
        const char* name;
        Annotations annotations;
        Kind otherwise;
        Kind expected;
        const char* reason;  // "" none
    };
    const std::string huge(256 * 1024, 'r');
    const Row rows[] = {
        {"absent", {}, Kind::Maglev, Kind::Maglev, ""},
        {"rr", {{kNative, "rr"}}, Kind::Maglev, Kind::RoundRobin, ""},
        {"random", {{kNative, "random"}}, kGlobal, Kind::Random, ""},
        {"mh", {{kNative, "mh"}}, kGlobal, Kind::Maglev, ""},
        {"upper case", {{kNative, "MH"}}, kGlobal, Kind::Maglev, ""},
        {"kube-router, mixed case", {{kKubeRouter, "Mh"}}, kGlobal, Kind::Maglev, ""},
        {"trimmed", {{kNative, " mh\n"}}, kGlobal, Kind::Maglev, ""},
        {"blank is not set", {{kNative, "  "}}, Kind::Random, Kind::Random, ""},
        {"native blank, alias set", {{kNative, ""}, {kKubeRouter, "mh"}}, kGlobal, Kind::Maglev, ""},
        {"native before alias", {{kNative, "random"}, {kKubeRouter, "mh"}, {kCilium, "maglev"}}, kGlobal, Kind::Random, ""},
        {"bad native hides a good alias", {{kNative, "best"}, {kKubeRouter, "mh"}}, Kind::Random, Kind::Random, "InvalidAnnotation"},
        {"alias before alias", {{kKubeRouter, "random"}, {kCilium, "maglev"}}, kGlobal, Kind::Random, ""},
        {"cilium maglev", {{kCilium, "maglev"}}, kGlobal, Kind::Maglev, ""},
        {"cilium random", {{kCilium, "random"}}, kGlobal, Kind::Random, ""},
        {"cilium knows no mh", {{kCilium, "mh"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"cilium knows no wrr", {{kCilium, "wrr"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"maglev is cilium's word", {{kNative, "maglev"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"unknown", {{kNative, "fastest"}}, Kind::Random, Kind::Random, "InvalidAnnotation"},
        {"prefix of a name", {{kNative, "r"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"256 KiB", {{kNative, huge}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"control characters", {{kNative, "\x01\x7f\xff"}}, kGlobal, kGlobal, "InvalidAnnotation"},
    };
    for (const Row& row : rows) {
        Notices notices;
        EXPECT_EQ(scheduler_of(row.annotations, row.otherwise, notices), row.expected) << row.name;
        const auto said = notices.sorted();
        EXPECT_EQ(said.size(), *row.reason == '\0' ? 0U : 1U) << row.name;
        for (const model::Notice& notice : said) {
            EXPECT_EQ(notice.reason, row.reason) << row.name;
            EXPECT_LE(notice.message.size(), 1024U) << row.name;  // EVT-001
        }
    }
}

TEST(SchedulerAnnotation, ComplaintNamesKeyValueRangeAndSubstitute_ANNG3) {
    Notices notices;
    (void)scheduler_of({{kNative, "f\x01st"}}, kGlobal, notices);
    ASSERT_EQ(notices.sorted().size(), 1U);
    EXPECT_EQ(notices.sorted()[0].message,
              "penstock.io/scheduler: \"f\\x01st\" is not accepted, which is rr, wrr, lc, wlc, sh, dh, sed, nq, p2c, random, mh; the "
              "gateway's own scheduler is used");
}

TEST(SchedulerAnnotation, ReachesTheGateway_SCHED001) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    world.policy.default_scheduler = lb::SchedulerKind::Random;
    EXPECT_EQ(find(world.evaluate(), "default/web/TCP")->scheduler, lb::SchedulerKind::Random);
    web.meta.annotations[kNative] = "mh";
    EXPECT_EQ(find(world.evaluate(), "default/web/TCP")->scheduler, lb::SchedulerKind::Maglev);
    web.meta.annotations[kNative] = "fastest";
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(find(outcome, "default/web/TCP")->scheduler, lb::SchedulerKind::Random);
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web InvalidAnnotation"});
}

TEST(NoEndpointsAction, Values_ANN29_ANNG2_ANNG3) {
    struct Row {
        const char* value;
        lb::EmptyAction expected;
        bool told;
    };
    const Row rows[] = {
        {"", lb::EmptyAction::Reject, false},       {"reject", lb::EmptyAction::Reject, false}, {"drop", lb::EmptyAction::Drop, false},
        {" drop ", lb::EmptyAction::Drop, false},   {"DROP", lb::EmptyAction::Reject, true},    {"none", lb::EmptyAction::Reject, true},
        {"dropped", lb::EmptyAction::Reject, true},
    };
    for (const Row& row : rows) {
        Notices notices;
        EXPECT_EQ(settings_of({{kNoEndpoints, row.value}}, {}, notices).no_endpoints, row.expected) << row.value;
        EXPECT_EQ(notices.sorted().size(), row.told ? 1U : 0U) << row.value;
    }
}

TEST(Text, PrintableFitsATerminalAndAString_ANNG3) {
    EXPECT_EQ(printable("plain text~"), "plain text~");
    EXPECT_EQ(printable(std::string_view("\0\n\x7f\xc3\xa4", 5)), "\\x00\\x0a\\x7f\\xc3\\xa4");
    EXPECT_EQ(printable(std::string(128, 'x')), std::string(128, 'x'));
    EXPECT_EQ(printable(std::string(129, 'x')), std::string(128, 'x') + "...");
    EXPECT_EQ(trimmed(" \t a b \r\n"), "a b");
    EXPECT_EQ(trimmed("  "), "");
    EXPECT_EQ(lower_case("RaNdOm-9"), "random-9");
}

TEST(Notices, AreSortedUniqueAndBounded_GEN006_EVT001) {
    Notices notices;
    for (size_t i = 0; i < kNoticesPerReason + 5; ++i) {
        notices.warn(reason::kInvalidPort, "port " + std::to_string(i));
    }
    notices.warn(reason::kFrontendConflict, "same");
    notices.warn(reason::kFrontendConflict, "same");
    const auto said = notices.sorted();
    ASSERT_EQ(said.size(), kNoticesPerReason + 2);
    EXPECT_TRUE(std::ranges::is_sorted(said));
    EXPECT_EQ(said[0].reason, "FrontendConflict");
    EXPECT_EQ(said[1].message, "and 5 more of this kind");
    Notices twice;
    notices.append_to(twice);
    notices.append_to(twice);
    EXPECT_EQ(twice.sorted().size(), said.size());
}

}  // namespace
}  // namespace penstock::semantics::testing
