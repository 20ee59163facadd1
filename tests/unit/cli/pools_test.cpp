// SPDX-License-Identifier: Apache-2.0
// penstockctl get pools, describe pool and get addresses, and the refusal in describe service: exact text,
// the same content as JSON, and the socket in use.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "control/cli/commands/views.hpp"
#include "control/cli/exit_code.hpp"
#include "control/cli/options.hpp"
#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli {
namespace pools_test {

constexpr const char* kPools = R"pb(
    phase: "assigning"
    leader { holder: "sync-0" is_leader: true transitions: 3 }
    refused: "pools \"a\" and \"b\" overlap at 10.9.0.12"
    pools {
      name: "internal"
      ranges: "10.9.0.10-10.9.0.20"
      avoid_buggy_ips: true
      priority: 5
      namespaces: "shop"
      namespaces: "tools"
      namespace_selector: "tier=web"
      service_selector: ""
      enforce: true
      internal: true
      disabled: true
      reassign: true
      ipv4 { total: 11 free: 11 }
      ipv6 {}
    }
    pools {
      name: "public"
      ranges: "203.0.113.0/24"
      ranges: "2001:db8:203::/64"
      auto_assign: true
      reservations {
        address: "203.0.113.7"
        service { namespace: "shop" name: "web" }
        users { namespace: "shop" name: "web" }
      }
      reservations {
        address: "203.0.113.8"
        service { namespace: "shop" name: "late" }
        users { namespace: "shop" name: "api" }
      }
      reservations {
        address: "203.0.113.9"
        service { namespace: "shop" name: "none" }
      }
      ipv4 { total: 256 used: 2 free: 253 }
      ipv6 { total: 18446744073709551615 used: 1 free: 18446744073709551614 }
    })pb";

constexpr const char* kAddresses = R"pb(
    services {
      service { namespace: "default" name: "gone" }
      addresses { address: "198.51.100.1" }
      addresses { address: "2001:db8:203::1" pool: "public" }
      refusal { reason: "LoadBalancerIPConflict" message: "the annotation differs" }
    }
    services {
      service { namespace: "shop" name: "new" }
      refusal { reason: "NoPool" message: "no pool gives IPv4" }
    }
    services {
      service { namespace: "shop" name: "web" }
      addresses { address: "203.0.113.7" pool: "public" }
      addresses { address: "2001:db8:203::7" pool: "public" }
    })pb";

class PoolsTest : public testing::Test {
 protected:
    PoolsTest() {
        EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kPools, &gateway_.pools_));
        EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kAddresses, &gateway_.addresses_));
    }

    Result<std::string> run(const std::vector<std::string>& words) {
        auto read = read_command_line(words);
        if (!read) {
            return std::unexpected(read.error());
        }
        const auto& invocation = std::get<Invocation>(*read);
        program_ = invocation.command->program;
        return answer_of(*invocation.command, &gateway_, invocation.request);
    }

    // Keeps the addresses of the Service alone, as penstock-sync does for a request with its name.
    void keep_only(const std::string& name) {
        v1::ListAddressesResponse found;
        for (const auto& service : gateway_.addresses_.services()) {
            if (service.service().name() == name) {
                *found.add_services() = service;
            }
        }
        gateway_.addresses_ = found;
    }

    test::FakeGateway gateway_;
    Program program_ = Program::Penstockd;
};

TEST_F(PoolsTest, GetPoolsHasUsageFlagsLeaderAndTheRefusedList_LB024) {
    EXPECT_EQ(run({"get", "pools"}).value(),
              R"(NAME      ADDRESSES                         IPV4-USED  IPV6-USED  FLAGS
internal  10.9.0.10-10.9.0.20                    0/11          -  disabled,internal,enforce,restricted,on-request,avoid-buggy-ips,reassign
public    203.0.113.0/24,2001:db8:203::/64      2/256  1/2^64-1+  -

Phase:   assigning
Leader:  sync-0 (this process)
Refused: pools "a" and "b" overlap at 10.9.0.12 (the previous pools stay in force)
)");
    EXPECT_EQ(program_, Program::PenstockSync);
}

TEST_F(PoolsTest, WideAddsFreeAddressesReservationsAndNamespaces) {
    EXPECT_EQ(run({"get", "pools", "-o", "wide", "--no-headers"}).value(),
              "internal  10.9.0.10-10.9.0.20                    0/11          -         11                   "
              "  -         0         5  shop,tools  "
              "disabled,internal,enforce,restricted,on-request,avoid-buggy-ips,reassign\n"
              "public    203.0.113.0/24,2001:db8:203::/64      2/256  1/2^64-1+        253  "
              "18446744073709551614         3         0  -           -\n")
        << "without header the footer is omitted as well";
}

TEST_F(PoolsTest, TheFooterNamesTheLeaderOfEachMode) {
    const auto leader_line = [&] {
        const std::string footer = pools_footer(gateway_.pools_);
        return footer.substr(footer.find("Leader:"));
    };
    gateway_.pools_.clear_refused();
    EXPECT_EQ(leader_line(), "Leader:  sync-0 (this process)\n");
    gateway_.pools_.mutable_leader()->set_is_leader(false);
    EXPECT_EQ(leader_line(), "Leader:  sync-0\n");
    gateway_.pools_.mutable_leader()->clear_holder();
    EXPECT_EQ(leader_line(), "Leader:  none\n");
    gateway_.pools_.clear_leader();
    EXPECT_EQ(leader_line(), "Leader:  not elected (folder of manifests)\n");
}

TEST_F(PoolsTest, ManyRangesAreShortened) {
    gateway_.pools_.mutable_pools()->DeleteSubrange(0, 1);
    for (const char* range : {"192.0.2.0/28", "192.0.2.32/28", "192.0.2.64/28"}) {
        gateway_.pools_.mutable_pools(0)->add_ranges(range);
    }
    const std::string table = pools_table(gateway_.pools_, false);
    EXPECT_NE(table.find("  203.0.113.0/24,2001:db8:203::/64,192.0.2.0/28,+2  "), std::string::npos) << table;
    EXPECT_NE(pools_table(gateway_.pools_, true).find(",192.0.2.64/28  "), std::string::npos);
}

TEST_F(PoolsTest, DescribePoolHasRulesReservationsAndServices_LB022) {
    EXPECT_EQ(run({"describe", "pool", "public"}).value(), R"(Pool public
  Addresses:       203.0.113.0/24,2001:db8:203::/64
  IPv4:            256 addresses, 2 used, 253 free
  IPv6:            2^64-1+ addresses, 1 used, 18446744073709551614 free
  Disabled:        off
  Auto-assign:     on
  Internal:        off
  Enforce:         off
  Reassign:        off
  Avoid buggy IPs: off
  Priority:        0
  Namespaces:      any
  NS labels:       any
  Service labels:  any
  Reservations:
    ADDRESS      SERVICE    STATE
    203.0.113.7  shop/web   in use
    203.0.113.8  shop/late  used by shop/api
    203.0.113.9  shop/none  not in use
  Services:
    SERVICE       ADDRESSES
    default/gone  2001:db8:203::1
    shop/web      203.0.113.7,2001:db8:203::7

Phase:   assigning
Leader:  sync-0 (this process)
Refused: pools "a" and "b" overlap at 10.9.0.12 (the previous pools stay in force)
)");
    EXPECT_EQ(program_, Program::PenstockSync);
}

TEST_F(PoolsTest, DescribePoolHasItsRestrictions) {
    const std::string text = run({"describe", "pool", "internal"}).value();
    for (const char* line :
         {"  IPv6:            none\n", "  Disabled:        on\n", "  Auto-assign:     off\n",
          "  Internal:        on\n", "  Enforce:         on\n", "  Reassign:        on\n",
          "  Avoid buggy IPs: on\n", "  Priority:        5\n", "  Namespaces:      shop,tools\n",
          "  NS labels:       tier=web\n", "  Service labels:  all\n", "  Reservations:    none\n",
          "  Services:        none\n"}) {
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
    }
}

TEST_F(PoolsTest, AnUnknownPoolIsNotFoundAndTheRefusedListIsNamed) {
    const auto unknown = run({"describe", "pool", "new"});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(exit_code(unknown.error()), kExitRefused);
    EXPECT_EQ(
        unknown.error().what,
        "there is no pool new in force; the newest list of pools is refused: pools \"a\" and \"b\" overlap "
        "at 10.9.0.12");
    gateway_.pools_.clear_refused();
    EXPECT_EQ(run({"describe", "pool", "new"}).error().what, "there is no pool new in force");
}

TEST_F(PoolsTest, GetAddressesHasAddressesOrTheRefusal_LB024) {
    EXPECT_EQ(run({"get", "addresses"}).value(),
              R"(NAMESPACE  NAME  ADDRESSES                     POOL      REFUSED                 MESSAGE
default    gone  198.51.100.1,2001:db8:203::1  -,public  LoadBalancerIPConflict  the annotation differs
shop       new   -                             -         NoPool                  no pool gives IPv4
shop       web   203.0.113.7,2001:db8:203::7   public    -                       -
)");
    EXPECT_EQ(program_, Program::PenstockSync);
    EXPECT_EQ(gateway_.addresses_request.namespace_() + "|" + gateway_.addresses_request.name(), "|");
    EXPECT_TRUE(run({"get", "address", "shop/web"}));
    EXPECT_EQ(gateway_.addresses_request.namespace_() + "|" + gateway_.addresses_request.name(), "shop|web");
    EXPECT_TRUE(run({"get", "addresses", "-n", "shop"}));
    EXPECT_EQ(gateway_.addresses_request.namespace_() + "|" + gateway_.addresses_request.name(), "shop|");
}

TEST_F(PoolsTest, JsonAndYamlHaveTheSameContent) {
    for (const char* format : {"json", "yaml"}) {
        const YAML::Node pools = YAML::Load(run({"get", "pools", "-o", format}).value());
        EXPECT_EQ(pools["leader"]["holder"].as<std::string>(), "sync-0");
        EXPECT_EQ(pools["refused"].as<std::string>(), gateway_.pools_.refused());
        EXPECT_EQ(pools["pools"][1]["ipv6"]["total"].as<std::string>(), "18446744073709551615");
        EXPECT_EQ(pools["pools"][0]["namespace_selector"].as<std::string>(), "tier=web");
        EXPECT_FALSE(pools["pools"][1]["namespace_selector"]);
        const YAML::Node pool = YAML::Load(run({"describe", "pool", "public", "-o", format}).value());
        EXPECT_EQ(pool["pool"]["name"].as<std::string>(), "public");
        ASSERT_EQ(pool["services"].size(), 2U);
        ASSERT_EQ(pool["services"][0]["addresses"].size(), 1U) << "the other address is not of this pool";
        EXPECT_EQ(pool["services"][0]["addresses"][0]["address"].as<std::string>(), "2001:db8:203::1");
        const YAML::Node addresses = YAML::Load(run({"get", "addresses", "-o", format}).value());
        ASSERT_EQ(addresses.size(), 3U);
        EXPECT_EQ(addresses[1]["refusal"]["reason"].as<std::string>(), "NoPool");
        EXPECT_FALSE(addresses[2]["refusal"]);
    }
}

TEST_F(PoolsTest, DescribeServiceMentionsTheRefusal_LB024) {
    gateway_.add_service("default", "gone");
    const std::string without = service_description(gateway_.services_, {});
    keep_only("gone");
    EXPECT_EQ(run({"describe", "service", "gone"}).value(), without + R"(
LoadBalancer addresses of default/gone
  Addresses:       198.51.100.1,2001:db8:203::1 from pool -,public
  Refused:         LoadBalancerIPConflict: the annotation differs
)");
    EXPECT_EQ(gateway_.addresses_request.namespace_() + "|" + gateway_.addresses_request.name(),
              "default|gone");
    EXPECT_EQ(program_, Program::Penstockd);
    gateway_.addresses_.mutable_services(0)->clear_refusal();
    EXPECT_EQ(run({"describe", "service", "gone"}).value(), without) << "nothing is refused";
}

TEST_F(PoolsTest, DescribeServiceWorksWithoutPenstockSync) {
    gateway_.add_service("default", "gone");
    for (const Errc code : {Errc::Unavailable, Errc::NotFound, Errc::Unsupported, Errc::PermissionDenied}) {
        gateway_.addresses_error = Error{code, "no"};
        EXPECT_EQ(run({"describe", "service", "gone"}).value(), service_description(gateway_.services_, {}));
    }
}

TEST_F(PoolsTest, AServiceThatTheGatewayLacksIsExplainedByItsRefusal_LB024) {
    keep_only("new");
    EXPECT_EQ(
        run({"describe", "service", "shop/new"}).error().what,
        "there is no service shop/new at the gateway; penstock-sync refuses its request for an address: "
        "NoPool: no pool gives IPv4");
    const std::string explained = run({"describe", "service", "shop/new"}).error().what;
    EXPECT_EQ(run({"describe", "service", "new"}).error().what, explained)
        << "its namespace is that of penstock-sync";
    gateway_.services_error = Error{Errc::NotFound, "there is no service shop/new"};
    EXPECT_EQ(run({"describe", "service", "shop/new"}).error().what, explained) << "as penstockd answers";
    gateway_.addresses_error = Error{Errc::Unavailable, "no"};
    EXPECT_EQ(run({"describe", "service", "shop/new"}).error().what, "there is no service shop/new");
    gateway_.services_error = Error{Errc::Unavailable, "gone"};
    EXPECT_EQ(run({"describe", "service", "shop/new"}).error().what, "gone");
}

TEST_F(PoolsTest, AddressesOfAnUnknownServiceAreNotFound) {
    gateway_.addresses_.clear_services();
    const auto refused = run({"get", "addresses", "shop/nosuch"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(exit_code(refused.error()), kExitRefused);
    EXPECT_EQ(refused.error().what, "penstock-sync assigns or refuses no address of a Service shop/nosuch");
    EXPECT_TRUE(run({"get", "addresses"})) << "a list may be empty";
}

TEST_F(PoolsTest, TheErrorOfPenstockSyncIsThatOfTheCommand) {
    gateway_.error = Error{Errc::NotFound, "this penstock-sync assigns no addresses from pools"};
    for (const auto& words :
         {std::vector<std::string>{"get", "pools"}, {"get", "addresses"}, {"describe", "pool", "public"}}) {
        const auto refused = run(words);
        ASSERT_FALSE(refused);
        EXPECT_EQ(exit_code(refused.error()), kExitRefused);
        EXPECT_EQ(refused.error().what, gateway_.error->what);
    }
}

TEST(PoolsConnection, AConnectionToPenstockdTakesAddressesFromItsPenstockSync) {
    auto sync = std::make_unique<test::FakeGateway>();
    sync->addresses_.add_services()->mutable_service()->set_name("web");
    const auto gateway =
        connect(Program::Penstockd, {"unix:/nonexistent/penstockd.sock"}, {}, 2, std::move(sync));
    ASSERT_TRUE(gateway);
    const auto addresses = (*gateway)->addresses({});
    ASSERT_TRUE(addresses) << addresses.error().what;
    EXPECT_EQ(addresses->services_size(), 1);
    const auto without = connect(Program::PenstockSync, {"unix:/nonexistent/penstock-sync.sock"}, {}, 2);
    EXPECT_EQ(exit_code((*without)->addresses({}).error()), kExitUnreachable);
    EXPECT_EQ(exit_code((*without)->pools().error()), kExitUnreachable);
}

}  // namespace pools_test
}  // namespace penstock::cli
