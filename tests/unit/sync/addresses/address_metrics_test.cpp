// SPDX-License-Identifier: Apache-2.0
// Metrics of addresses from pools, as scraped. metrics_test.cpp compares their names and texts with the
// manual.
#include "control/sync/addresses/address_metrics.hpp"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "tests/unit/sync/addresses/address_example.hpp"

namespace penstock::sync {
namespace address_metrics_test {

std::string text_of(const std::optional<AddressStatus>& status) {
    return "\n" + prometheus::TextSerializer().Serialize(address_families(status));
}

void expect_series(const std::string& all, const std::string& line) {
    EXPECT_NE(all.find("\n" + line + "\n"), std::string::npos) << line << "\nis not in\n" << all;
}

TEST(AddressMetrics, PoolsHaveTheirCountsByFamily) {
    const std::string all = text_of(test::example_addresses());
    expect_series(all, R"(penstock_pool_addresses{pool="public",family="IPv4",state="total"} 256)");
    expect_series(all, R"(penstock_pool_addresses{pool="public",family="IPv4",state="used"} 2)");
    expect_series(all, R"(penstock_pool_addresses{pool="public",family="IPv4",state="free"} 253)");
    expect_series(all, R"(penstock_pool_addresses{pool="public",family="IPv6",state="used"} 1)");
    expect_series(all, R"(penstock_pool_addresses{pool="internal",family="IPv4",state="free"} 11)");
    EXPECT_EQ(all.find(R"(pool="internal",family="IPv6")"), std::string::npos)
        << "the pool has no IPv6 addresses";
}

TEST(AddressMetrics, AnExhaustedPoolHasZeroFreeAddresses) {
    AddressStatus status = test::example_addresses();
    status.usage[0].v4 = {.total = 11, .used = 11, .free = 0};
    expect_series(text_of(status),
                  R"(penstock_pool_addresses{pool="internal",family="IPv4",state="free"} 0)");
}

TEST(AddressMetrics, EveryReasonHasACount_LB024) {
    const std::string all = text_of(test::example_addresses());
    for (const char* line : {R"({reason="NoPool"} 2)", R"({reason="PoolExhausted"} 0)",
                             R"({reason="AddressTaken"} 1)", R"({reason="AddressOutsidePools"} 0)",
                             R"({reason="NotAllowedForNamespace"} 0)", R"({reason="FamilyMissing"} 0)",
                             R"({reason="SharingRefused"} 0)", R"({reason="LoadBalancerIPConflict"} 0)"}) {
        expect_series(all, std::string("penstock_services_without_address") + line);
    }
}

TEST(AddressMetrics, AServiceThatKeepsAddressesIsCountedApart_LB024) {
    const std::string all = text_of(test::example_addresses());
    expect_series(all, R"(penstock_services_with_refused_request{reason="LoadBalancerIPConflict"} 1)");
    expect_series(all, R"(penstock_services_with_refused_request{reason="NoPool"} 0)");
}

TEST(AddressMetrics, LeaderAndWritesAreThoseOfTheProcess) {
    AddressStatus status = test::example_addresses();
    const std::string all = text_of(status);
    expect_series(all, "penstock_leader 1");
    expect_series(all, "penstock_lease_transitions_total 3");
    for (const char* line :
         {R"({object="service",result="written"} 10)", R"({object="service",result="conflict"} 1)",
          R"({object="service",result="failed"} 2)", R"({object="pool",result="written"} 5)",
          R"({object="pool",result="rejected"} 6)", R"({object="pool",result="forbidden"} 7)",
          R"({object="pool",result="gone"} 8)", R"({object="pool",result="cancelled"} 9)"}) {
        expect_series(all, std::string("penstock_status_writes_total") + line);
    }
    expect_series(all, R"(penstock_status_writes_pending{object="service"} 4)");
    expect_series(all, R"(penstock_status_writes_pending{object="pool"} 1)");
    status.writes->leadership.is_leader = false;
    expect_series(text_of(status), "penstock_leader 0");
}

TEST(AddressMetrics, AFolderOfManifestsHasPoolsAndNoLeader) {
    AddressStatus status = test::example_addresses();
    status.writes.reset();
    const std::string all = text_of(status);
    EXPECT_EQ(all.find("\npenstock_leader "), std::string::npos) << all;
    EXPECT_EQ(all.find("\npenstock_status_writes_pending{"), std::string::npos) << all;
    EXPECT_NE(all.find("\npenstock_pool_addresses{"), std::string::npos) << all;
}

TEST(AddressMetrics, WithoutAssignmentThereIsNoSeries) {
    for (const auto& family : address_families(std::nullopt)) {
        EXPECT_TRUE(family.metric.empty()) << family.name;
    }
}

}  // namespace address_metrics_test
}  // namespace penstock::sync
