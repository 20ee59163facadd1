// SPDX-License-Identifier: Apache-2.0
// Use of the twins' addresses: the identity, and the source of translated flows.
#include "control/gateway/compile/port_addresses.hpp"

#include <gtest/gtest.h>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace port_addresses_test {

TEST(PortAddresses, TheIdentityTellsConfiguredAddressesFromAddedOnes) {
    const std::vector<TwinAddresses> twins = {{"pen0", {ip("192.0.2.1")}}, {"pen1", {}}};
    const auto addresses = port_addresses(
        twins, {{{1}, ip("10.0.0.1"), 24}, {{0}, ip("192.0.2.9"), 32}, {{0}, ip("192.0.2.1"), 24}});
    EXPECT_EQ(addresses, (std::vector<model::PortAddress>{{"pen0", ip("192.0.2.1"), 24, true},
                                                          {"pen0", ip("192.0.2.9"), 32, false},
                                                          {"pen1", ip("10.0.0.1"), 24, false}}));
}

TEST(SnatAddresses, DefaultIsTheFirstGlobalAddressOfEachTwinAndFamily_NAT002) {
    const std::vector<TwinAddresses> twins = {{"pen0", {ip("192.0.2.7"), ip("192.0.2.1")}}, {"pen1", {}}};
    const std::vector<route::LocalAddress> present = {
        {{0}, ip("192.0.2.1"), 24}, {{0}, ip("fe80::1"), 64},  {{0}, ip("192.0.2.7"), 24},
        {{1}, ip("10.0.0.2"), 24},  {{1}, ip("10.0.0.1"), 24}, {{1}, ip("2001:db8::1"), 64}};
    EXPECT_EQ(
        snat_addresses({}, twins, present),
        (std::vector<nat::SnatAddress>{
            {ip("192.0.2.7"), {0}, true}, {ip("10.0.0.1"), {1}, true}, {ip("2001:db8::1"), {1}, true}}));
    // The first configured address is no longer on the twin: the next one is used.
    EXPECT_EQ(snat_addresses({}, twins, {{{0}, ip("192.0.2.1"), 24}}),
              (std::vector<nat::SnatAddress>{{ip("192.0.2.1"), {0}, true}}));
}

TEST(SnatAddresses, ALoneAddressIsAVipBeforeItIsASource_NAT002) {
    const std::vector<TwinAddresses> twins = {{"pen0", {}}};
    const route::LocalAddress vip4{{0}, ip("80.11.12.10"), 32};
    const route::LocalAddress vip6{{0}, ip("2001:db8:80::10"), 128};
    const route::LocalAddress own4{{0}, ip("192.0.2.1"), 24};
    const route::LocalAddress own6{{0}, ip("fd00::1"), 64};
    EXPECT_EQ(snat_addresses({}, twins, {vip4, vip6, own4, own6, {{0}, ip("fe80::1"), 64}}),
              (std::vector<nat::SnatAddress>{{ip("192.0.2.1"), {0}, true}, {ip("fd00::1"), {0}, true}}));
    // An unnumbered link: there is no other address.
    EXPECT_EQ(snat_addresses({}, twins, {vip6}),
              (std::vector<nat::SnatAddress>{{ip("2001:db8:80::10"), {0}, true}}));
    // Addresses that the operator configured for the port come first, regardless of their prefix length.
    EXPECT_EQ(snat_addresses({}, {{"pen0", {ip("2001:db8:80::10")}}}, {vip6, own6}),
              (std::vector<nat::SnatAddress>{{ip("2001:db8:80::10"), {0}, true}}));
    // Link-local only: not usable as a source.
    EXPECT_TRUE(snat_addresses({}, twins, {{{0}, ip("fe80::1"), 64}}).empty());
}

TEST(SnatAddresses, GivenOnesReplaceTheDefaultsOfTheirFamily) {
    const std::vector<TwinAddresses> twins = {{"pen0", {}}};
    const std::vector<route::LocalAddress> present = {{{0}, ip("192.0.2.1"), 24},
                                                      {{0}, ip("2001:db8::1"), 64}};
    EXPECT_EQ(
        snat_addresses({ip("198.51.100.1"), ip("192.0.2.1")}, twins, present),
        (std::vector<nat::SnatAddress>{
            {ip("198.51.100.1"), {}, false}, {ip("192.0.2.1"), {}, true}, {ip("2001:db8::1"), {0}, true}}));
    // On loopback, for example: Linux opens connections from it too, so its ports are shared.
    EXPECT_TRUE(
        snat_addresses({ip("198.51.100.1")}, twins, present, {ip("198.51.100.1")}).front().shared_with_host);
}

TEST(SnatAddresses, ThoseOfSharesFollowAndAreNoDefaults) {
    const std::vector<TwinAddresses> twins = {{"pen0", {ip("192.0.2.1")}}};
    const std::vector<route::LocalAddress> present = {{{0}, ip("192.0.2.1"), 24}, {{0}, ip("192.0.2.2"), 24}};
    const nat::SnatAddress primary{
        .address = ip("192.0.2.1"), .egress = {}, .group = 1, .part = nat::PortPart::Primary};
    const nat::SnatAddress heir{
        .address = ip("2001:db8::9"), .egress = {}, .group = 2, .part = nat::PortPart::Heir};
    nat::SnatAddress of_host = primary;
    of_host.shared_with_host = true;
    EXPECT_EQ(snat_addresses({}, twins, present, {}, {primary, heir}),
              (std::vector<nat::SnatAddress>{{ip("192.0.2.2"), {0}, true}, of_host, heir}));
    EXPECT_EQ(snat_addresses({ip("198.51.100.1")}, twins, {}, {ip("192.0.2.1")}, {primary}),
              (std::vector<nat::SnatAddress>{{ip("198.51.100.1"), {}, false}, of_host}));
}

}  // namespace port_addresses_test
}  // namespace penstock::gateway
