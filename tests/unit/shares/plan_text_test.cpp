// SPDX-License-Identifier: Apache-2.0
#include "control/shares/plan_text.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scratch_folder.hpp"

namespace penstock::shares {
namespace plan_text_test {

constexpr const char* kTwo = "version 7\ngateway edge-1\ngateway edge-2 weight=2\n";

Plan parsed(const std::string& text) {
    auto plan = parse_plan(text + "end\n");
    EXPECT_TRUE(plan) << plan.error().what;
    return plan ? std::move(*plan) : Plan{};
}

TEST(PlanText, AShortFileIsCompletedByTheHash) {
    const Plan plan = parsed(kTwo);
    EXPECT_EQ(plan.version, 7U);
    EXPECT_EQ(plan.gateways, (std::vector<Gateway>{{"edge-1", 1}, {"edge-2", 2}}));
    ASSERT_EQ(plan.shares.size(), kSharesDefault);
    for (size_t number = 0; number < plan.shares.size(); ++number) {
        const auto order = by_preference(plan.gateways, number);
        EXPECT_EQ(plan.shares[number].primary, order[0]) << number;
        EXPECT_EQ(plan.shares[number].heir, order[1]) << number;
    }
}

TEST(PlanText, ALineGivesTheVipsAndTheGatewaysOfAShare) {
    const Plan plan = parsed(std::string(kTwo) +
                             "shares 4  # few\n\n"
                             "share 3 heir=edge-1 vips=203.0.113.0/28,198.51.100.7 primary=edge-2\n"
                             "\tshare 1\tprimary=edge-1\r\n");
    ASSERT_EQ(plan.shares.size(), 4U);
    EXPECT_EQ(
        plan.shares[3],
        (Share{.vips = {Prefix::parse("198.51.100.7/32").value(), Prefix::parse("203.0.113.0/28").value()},
               .primary = "edge-2",
               .heir = "edge-1"}));
    EXPECT_EQ(plan.shares[1].primary, "edge-1");
    EXPECT_EQ(plan.shares[1].heir, "edge-2") << "the one that is left";
}

TEST(PlanText, SnatAddressesBelongToOneShare) {
    const Plan plan =
        parsed(std::string(kTwo) + "share 3 snat=2001:db8::3,198.51.100.3\nshare 4 snat=198.51.100.2\n");
    EXPECT_EQ(plan.shares[3].snat, (std::vector<IpAddr>{IpAddr::parse("198.51.100.3").value(),
                                                        IpAddr::parse("2001:db8::3").value()}));
    EXPECT_TRUE(plan.shares[0].snat.empty());
    for (const auto& [address, share] : std::initializer_list<std::pair<const char*, int>>{
             {"198.51.100.3", 3}, {"2001:db8::3", 3}, {"198.51.100.2", 4}}) {
        EXPECT_EQ(plan.map().share_of(IpAddr::parse(address).value()), share) << address;
    }
}

TEST(PlanText, AnHeirAloneLeavesAnotherPrimary) {
    const Plan plan =
        parsed(std::string(kTwo) + "gateway edge-3\nshare 0 heir=edge-1\nshare 1 heir=edge-2\n");
    for (const size_t number : {0U, 1U}) {
        EXPECT_NE(plan.shares[number].primary, plan.shares[number].heir);
        EXPECT_NE(plan.gateway(plan.shares[number].primary), nullptr);
    }
    EXPECT_EQ(plan.shares[0].heir, "edge-1");
}

TEST(PlanText, AnOnlyGatewayHasNoHeir) {
    for (const char* const share : {"", "share 0 heir=edge-1\n", "share 0 primary=edge-1\n"}) {
        const Plan plan = parsed(std::string("version 1\ngateway edge-1\n") + share);
        EXPECT_EQ(plan.shares[0].primary, "edge-1") << share;
        EXPECT_EQ(plan.shares[0].heir, "") << share;
    }
}

TEST(PlanText, AGatewayMayHaveAnAddress) {
    const Plan plan = parsed(
        "version 1\ngateway a address=10.0.0.1:7443\ngateway b weight=2 address=[2001:db8::1]:7443\n"
        "gateway c address=edge-3.example:7443 weight=3\ngateway d\n");
    EXPECT_EQ(plan.gateways,
              (std::vector<Gateway>{{.name = "a", .address = "10.0.0.1:7443"},
                                    {.name = "b", .weight = 2, .address = "[2001:db8::1]:7443"},
                                    {.name = "c", .weight = 3, .address = "edge-3.example:7443"},
                                    {.name = "d"}}));
}

TEST(PlanText, StraysAreForwardedOnALink) {
    const std::string text =
        "version 1\ngateway a link=10.0.0.1\ngateway b link=2001:db8::2\nstrays forward\nshare 3 "
        "snat=198.51.100.3\n";
    const Plan plan = parsed(text);
    EXPECT_TRUE(plan.forwards_strays);
    EXPECT_EQ(plan.gateways[0].link, IpAddr::parse("10.0.0.1").value());
    EXPECT_EQ(plan.gateways[1].link, IpAddr::parse("2001:db8::2").value());
    EXPECT_FALSE(parsed(kTwo).forwards_strays) << "only if the plan has the line";
    EXPECT_EQ(parse_plan(text + "share 4 snat=10.0.0.1\nend\n").error().what,
              "gateway a: link 10.0.0.1 is a SNAT address of share 4");
}

TEST(PlanText, SpreadVipsBelongToTheSharesOfTheirClients) {
    const Plan plan = parsed(
        "version 1\ngateway a link=10.0.0.1\ngateway b link=10.0.0.2\nstrays forward\n"
        "spread 203.0.113.7,192.0.2.0/24 key=12345678901234567890\n");
    EXPECT_EQ(plan.spread, (std::vector<Prefix>{Prefix::parse("192.0.2.0/24").value(),
                                                Prefix::parse("203.0.113.7/32").value()}));
    EXPECT_EQ(plan.spread_key, 12345678901234567890ULL);
    EXPECT_TRUE(plan.map().is_spread(IpAddr::v4(203, 0, 113, 7)));
    EXPECT_FALSE(plan.map().is_spread(IpAddr::v4(203, 0, 113, 8)));
}

TEST(PlanText, AnAddressIsAHostAndAPort) {
    for (const char* const text : {"", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:70000", ":7443",
                                   "2001:db8::1:7443", "unix:/run/penstock.sock", "a/b:7443", "a\x1b:7443"}) {
        const auto plan = parse_plan(std::string(kTwo) + "gateway a address=" + text + "\nend\n");
        ASSERT_FALSE(plan) << text;
        EXPECT_TRUE(plan.error().what.starts_with("line 4: gateway a: address \"")) << plan.error().what;
        EXPECT_TRUE(plan.error().what.contains("must be HOST:PORT")) << plan.error().what;
    }
}

constexpr const char* kGatewayLine =
    "line 4: write `gateway NAME [weight=NUMBER] [address=HOST:PORT] [link=ADDRESS]`: NAME is the "
    "--gateway-name "
    "of a gateway, of letters, digits, '.', '-' and '_'";

constexpr const char* kSpreadLine =
    "line 4: write `spread VIPS key=NUMBER`: VIPS are prefixes with commas between them, NUMBER is random, "
    "and "
    "the same on all gateways";

struct Mistake {
    const char* text;  // behind kTwo
    const char* error;
};

TEST(PlanText, EachMistakeHasItsLineAndItsRule) {
    const Mistake mistakes[] = {
        {"host a\n", "line 4: \"host\" is not version, gateway, shares, share, strays, spread or end"},
        {"version 8\n", "line 4: a second version"},
        {"gateway\n", kGatewayLine},
        {"gateway weight=2\n", kGatewayLine},
        {"gateway a\x1b[31m\n", kGatewayLine},
        {"gateway a weight=2 weight=3\n", "line 4: gateway a: \"weight\" is given twice"},
        {"gateway a weight=0\n", "line 4: gateway a: weight \"0\" must be a number from 1 to 100"},
        {"gateway a weight=101\n", "line 4: gateway a: weight \"101\" must be a number from 1 to 100"},
        {"gateway a 192.0.2.1\n", "line 4: gateway a: \"192.0.2.1\" is not weight=, address= or link="},
        {"gateway a link=fe80::1\n", "line 4: gateway a: link \"fe80::1\" is not a global unicast address"},
        {"gateway a link=10.0.0.1\ngateway b link=10.0.0.1\n",
         "line 5: gateway b: link 10.0.0.1 is that of a"},
        {"strays drop\n", "line 4: write `strays forward`"},
        {"strays forward\nstrays forward\n",
         "line 5: strays are forwarded already; strays forward: gateway edge-1 has no link=ADDRESS, by which "
         "the others reach it on a common link; strays forward: gateway edge-2 has no link=ADDRESS, by which "
         "the others reach it on a common link"},
        {"spread 203.0.113.0/28\n", kSpreadLine},
        {"spread 203.0.113.0/28 key=0\n", kSpreadLine},
        {"spread 203.0.113.0/28 key=7\n",
         "spread VIPs reach gateways that do not serve them: add `strays forward`"},
        {"share 1 vips=203.0.113.0/28\nspread 203.0.113.0/28 key=7\n",
         "line 5: 203.0.113.0/28 is among the VIPs of line 4 already; spread VIPs reach gateways that do not "
         "serve them: add `strays forward`"},
        {"gateway a address=a:1\ngateway b address=a:1\n", "line 5: gateway b: address \"a:1\" is that of a"},
        {"gateway edge-2\n", "line 4: gateway edge-2 is listed already"},
        {"shares 0\n", "line 4: write `shares NUMBER`, from 1 to 64"},
        {"shares 65\n", "line 4: write `shares NUMBER`, from 1 to 64"},
        {"shares 4\nshares 4\n", "line 5: a second number of shares"},
        {"share\n",
         "line 4: write `share NUMBER [vips=LIST] [primary=NAME] [heir=NAME] [snat=LIST]`, numbers from 0"},
        {"share 16\n", "line 4: share 16 is not one of the 16 shares, which are numbered from 0"},
        {"share 1\nshare 1\n", "line 5: share 1 is given already"},
        {"share 1 heir=\n", "line 4: \"heir=\" has no value"},
        {"share 1 primary\n", "line 4: \"primary\" has no value"},
        {"end\nshares 3\n", "line 5: text after the end; line 6: text after the end"},
        {"share 1 heir=edge-1 heir=edge-2\n", "line 4: \"heir\" is given twice"},
        {"share 1 owner=edge-1\n", "line 4: \"owner=edge-1\" is not vips=, primary=, heir= or snat="},
        {"share 1 primary=edge-3\n", "line 4: primary \"edge-3\" is not a gateway of this file"},
        {"share 1 heir=edge-3\n", "line 4: heir \"edge-3\" is not a gateway of this file"},
        {"share 1 primary=edge-1 heir=edge-1\n", "line 4: \"edge-1\" is both primary and heir"},
        {"share 1 vips=203.0.113.0/33\n", "line 4: \"203.0.113.0/33\" is neither an address nor a prefix"},
        {"share 1 vips=203.0.113.1/24\n",
         "line 4: \"203.0.113.1/24\" has bits beyond its prefix length: write 203.0.113.0/24"},
        {"share 1 vips=203.0.113.1,\n", "line 4: \"\" is neither an address nor a prefix"},
        {"share 1 vips=203.0.113.1\nshare 2 vips=203.0.113.1/32\n",
         "line 5: 203.0.113.1/32 is among the VIPs of line 4 already"},
        {"share x\nshares x\n",
         "line 4: write `share NUMBER [vips=LIST] [primary=NAME] [heir=NAME] [snat=LIST]`, numbers from 0; "
         "line 5: write `shares NUMBER`, from 1 to 64"},
        {"share 1 snat=\n", "line 4: \"snat=\" has no value"},
        {"share 1 snat=198.51.100.1/32\n", "line 4: \"198.51.100.1/32\" is not a global unicast address"},
        {"share 1 snat=198.51.100.1,\n", "line 4: \"\" is not a global unicast address"},
        {"share 1 snat=0.0.0.0,127.0.0.1\n",
         "line 4: \"0.0.0.0\" is not a global unicast address; line 4: \"127.0.0.1\" is not a global unicast "
         "address"},
        {"share 1 snat=224.0.0.1,255.255.255.255\n",
         "line 4: \"224.0.0.1\" is not a global unicast address; line 4: \"255.255.255.255\" is not a global "
         "unicast address"},
        {"share 1 snat=fe80::1\n", "line 4: \"fe80::1\" is not a global unicast address"},
        {"share 1 snat=198.51.100.1,198.51.100.1\n",
         "line 4: 198.51.100.1 is a SNAT address of share 1 already"},
        {"share 1 snat=198.51.100.1\nshare 2 snat=2001:db8::1,198.51.100.1\n",
         "line 5: 198.51.100.1 is a SNAT address of share 1 already"},
        {"share 1 vips=203.0.113.0/28\nshare 2 snat=203.0.113.7\n",
         "line 5: SNAT address 203.0.113.7 is among the VIPs 203.0.113.0/28 of line 4"},
        {"share 1 snat=2001:db8::1 vips=2001:db8::/64\n",
         "line 4: SNAT address 2001:db8::1 is among the VIPs 2001:db8::/64 of line 4"},
    };
    for (const auto& [text, error] : mistakes) {
        const auto plan = parse_plan(std::string(kTwo) + text + "end\n");
        ASSERT_FALSE(plan) << text;
        EXPECT_EQ(plan.error().what, error) << text;
    }
}

TEST(PlanText, AFileNeedsAVersionAndAGateway) {
    EXPECT_EQ(parse_plan("end\n").error().what,
              "no version: add `version 1`, and raise the number with each change; no gateway");
    for (const char* const number : {"0", "9007199254740992", "-1", "1 2"}) {
        EXPECT_EQ(parse_plan("version " + std::string(number) + "\ngateway a\nend\n").error().what,
                  "line 1: write `version NUMBER`, from 1 to 9007199254740991; no version: add `version 1`, "
                  "and raise the number with each change");
    }
}

// Whoever reads a file while it is written may see any part of it.
TEST(PlanText, NoPartOfAPlanIsAPlan) {
    const std::string whole =
        std::string(kTwo) + "shares 4\nshare 3 vips=203.0.113.0/28 primary=edge-2\nend\n";
    EXPECT_TRUE(parse_plan(whole));
    for (size_t length = 0; length < whole.size() - 1; ++length) {
        EXPECT_FALSE(parse_plan(whole.substr(0, length))) << length;
    }
}

TEST(PlanText, SizesAreLimited) {
    std::string text = "version 1\n";
    for (int i = 0; i <= 64; ++i) {
        text += "gateway edge-" + std::to_string(i) + "\n";
    }
    EXPECT_EQ(parse_plan(text + "end\n").error().what, "line 66: more than 64 gateways");
    text = std::string(kTwo) + "share 0 vips=203.0.113.0";
    for (int i = 0; i < 1'024; ++i) {
        text += ",2001:db8::" + std::to_string(i);
    }
    EXPECT_EQ(parse_plan(text + "\nend\n").error().what, "more than 1024 prefixes of VIPs");
    text = std::string(kTwo) + "share 0 snat=2001:db8::1";
    for (int i = 2; i <= 64; ++i) {
        text += ",2001:db8::" + std::to_string(i);
    }
    EXPECT_TRUE(parse_plan(text + "\nend\n"));
    EXPECT_EQ(parse_plan(text + ",2001:db8::ffff\nend\n").error().what, "more than 64 SNAT addresses");
    EXPECT_EQ(parse_plan(std::string((1 << 20) + 1, '#')).error().what, "more than 1048576 bytes");
    text = kTwo;
    for (int i = 0; i < 20; ++i) {
        text += "x\n";
    }
    EXPECT_TRUE(parse_plan(text + "end\n").error().what.ends_with("; and 4 more"));
}

TEST(PlanText, AFileIsNamedInItsErrors) {
    const test::ScratchFolder folder;
    const auto file = folder.path() / "shares";
    EXPECT_EQ(read_plan(file).error().code, Errc::NotFound);
    EXPECT_EQ(read_plan(file).error().what, file.string() + ": no such file");
    std::ofstream(file) << "gateway a\nend\n";
    EXPECT_EQ(read_plan(file).error().what,
              file.string() + ": no version: add `version 1`, and raise the number with each change");
    std::ofstream(file) << kTwo << "end\n";
    EXPECT_EQ(read_plan(file).value(), parsed(kTwo));
    std::filesystem::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(read_plan(file).error().what, file.string() + ": not a regular file") << "and does not wait";
}

}  // namespace plan_text_test
}  // namespace penstock::shares
