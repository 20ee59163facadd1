// SPDX-License-Identifier: Apache-2.0
// Pools, addresses and refusals as messages for penstockctl.
#include "control/sync/addresses/address_messages.hpp"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "tests/unit/sync/addresses/address_example.hpp"

namespace penstock::sync {
namespace address_messages_test {

using test::address;

template <typename Message>
void expect_equal(const Message& message, const char* expected_text) {
    Message expected;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(expected_text, &expected));
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(message, expected))
        << message.DebugString();
}

TEST(AddressMessages, PoolsHaveAllFieldsCountsAndTheLeader_LB024) {
    expect_equal(pools_message(test::example_addresses()), R"pb(
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
          service_selector: "zone in (a,b)"
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
        })pb");
}

TEST(AddressMessages, AFolderOfManifestsHasNoLeader) {
    AddressStatus status = test::example_addresses();
    status.writes.reset();
    EXPECT_FALSE(pools_message(status).has_leader());
}

TEST(AddressMessages, AServiceHasAddressesARefusalOrBoth_LB024) {
    expect_equal(addresses_message(test::example_addresses(), {}), R"pb(
        services {
          service { namespace: "default" name: "gone" }
          addresses { address: "198.51.100.1" }
          refusal { reason: "LoadBalancerIPConflict" message: "the annotation differs" }
        }
        services {
          service { namespace: "shop" name: "api" }
          addresses { address: "203.0.113.8" pool: "public" }
        }
        services {
          service { namespace: "shop" name: "late" }
          refusal { reason: "AddressTaken" message: "203.0.113.8 is used by shop/api" }
        }
        services {
          service { namespace: "shop" name: "new" }
          refusal { reason: "NoPool" message: "no pool gives IPv4" }
        }
        services {
          service { namespace: "shop" name: "other" }
          refusal { reason: "NoPool" message: "no pool gives IPv6" }
        }
        services {
          service { namespace: "shop" name: "web" }
          addresses { address: "203.0.113.7" pool: "public" }
          addresses { address: "2001:db8:203::7" pool: "public" }
        })pb");
}

TEST(AddressMessages, OnlySelectedServicesAreListed) {
    const auto names = [](const char* namespace_name, const char* name) {
        v1::ListAddressesRequest request;
        request.set_namespace_(namespace_name);
        request.set_name(name);
        std::string text;
        const auto message = addresses_message(test::example_addresses(), request);
        for (const auto& service : message.services()) {
            text += service.service().namespace_() + "/" + service.service().name() + " ";
        }
        return text;
    };
    EXPECT_EQ(names("default", ""), "default/gone ");
    EXPECT_EQ(names("", "web"), "shop/web ");
    EXPECT_EQ(names("shop", "new"), "shop/new ");
    EXPECT_EQ(names("default", "web"), "");
}

TEST(AddressMessages, ARangeThatIsAPrefixIsWrittenAsOne) {
    const struct {
        const char *first, *last, *text;
    } rows[] = {{"192.0.2.1", "192.0.2.1", "192.0.2.1/32"},
                {"192.0.2.0", "192.0.2.255", "192.0.2.0/24"},
                {"0.0.0.0", "255.255.255.255", "0.0.0.0/0"},
                {"192.0.2.0", "192.0.2.254", "192.0.2.0-192.0.2.254"},
                {"192.0.2.1", "192.0.2.255", "192.0.2.1-192.0.2.255"},
                {"192.0.1.255", "192.0.2.0", "192.0.1.255-192.0.2.0"},
                {"192.0.2.128", "192.0.2.159", "192.0.2.128/27"},
                {"2001:db8::", "2001:db8::1", "2001:db8::/127"},
                {"2001:db8::7", "2001:db8::7", "2001:db8::7/128"},
                {"2001:db8::1", "2001:db8::2", "2001:db8::1-2001:db8::2"}};
    for (const auto& row : rows) {
        EXPECT_EQ(range_text({address(row.first), address(row.last)}), row.text);
    }
}

}  // namespace address_messages_test
}  // namespace penstock::sync
