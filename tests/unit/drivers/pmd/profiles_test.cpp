// SPDX-License-Identifier: Apache-2.0
// docs/nics.md documents the profiles of drivers/pmd: a row for each driver in its table, and each quirk with
// its source.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "drivers/pmd/profiles.hpp"
#include "drivers/steering/rss.hpp"

namespace penstock::drivers {
namespace profiles_test {

const char* word(Binding binding) {
    switch (binding) {
        case Binding::Vfio:
            return "vfio-pci";
        case Binding::Bifurcated:
            return "bifurcated";
        case Binding::Interface:
            return "interface";
        case Binding::Software:
            return "none";
    }
    return "";
}

std::string word(RssAccess access) {
    switch (access) {
        case RssAccess::Hidden:
            return "hidden";
        case RssAccess::Fixed:
            return "read";
        case RssAccess::Settable:
            return "set, read";
    }
    return "";
}

std::string words(uint8_t bits, std::initializer_list<std::pair<uint8_t, const char*>> names) {
    std::string text;
    for (const auto& [bit, name] : names) {
        if ((bits & bit) != 0) {
            text += (text.empty() ? "" : " ") + std::string(name);
        }
    }
    return text.empty() ? "-" : text;
}

std::string row_of(const PmdProfile& profile) {
    using Flow = FlowExpectation;
    const bool has_rss = profile.rss.kinds.any();
    std::string key = has_rss ? word(profile.rss.key) : "-";
    if (has_rss && profile.rss.key != RssAccess::Hidden) {
        key += " (" + std::to_string(profile.rss.key_bytes) + ")";
    }
    return "| `" + std::string(profile.driver) + "` | " + std::string(profile.family) + " | " +
           word(profile.binding) + " | " + (has_rss ? to_string(profile.rss.kinds) : "-") + " | " + key +
           " | " + (has_rss ? word(profile.rss.table) : "-") + " | " +
           words(profile.flow.items, {{Flow::kEth, "eth"},
                                      {Flow::kVlan, "vlan"},
                                      {Flow::kIpv4, "ipv4"},
                                      {Flow::kIpv6, "ipv6"},
                                      {Flow::kTcp, "tcp"},
                                      {Flow::kUdp, "udp"}}) +
           " | " +
           words(profile.flow.actions, {{Flow::kQueue, "queue"},
                                        {Flow::kDrop, "drop"},
                                        {Flow::kMark, "mark"},
                                        {Flow::kCount, "count"},
                                        {Flow::kRss, "rss"},
                                        {Flow::kPassthru, "passthru"}}) +
           " | " +
           (profile.flow.actions == 0  ? "-"
            : profile.flow.masks_ports ? "by mask"
                                       : "whole") +
           " |";
}

std::vector<std::string> lines_of_the_page() {
    std::ifstream page(PENSTOCK_NICS_PAGE);
    std::vector<std::string> lines;
    for (std::string line; std::getline(page, line);) {
        lines.push_back(line);
    }
    return lines;
}

TEST(NicsPage, HasARowForEachDriverAndNoOther) {
    const std::vector<std::string> lines = lines_of_the_page();
    ASSERT_FALSE(lines.empty()) << PENSTOCK_NICS_PAGE;
    std::set<std::string> wanted;
    for (const PmdProfile& profile : pmd_profiles()) {
        wanted.insert(row_of(profile));
    }
    std::set<std::string> found;
    for (const std::string& line : lines) {
        // The row without its last cell, which states how it was verified.
        if (line.starts_with("| `net_") || line.starts_with("| `mlx")) {
            const size_t last = line.rfind(" | ");
            found.insert(line.substr(0, last + 2));
        }
    }
    for (const std::string& row : wanted) {
        EXPECT_TRUE(found.contains(row)) << "missing: " << row;
    }
    for (const std::string& row : found) {
        EXPECT_TRUE(wanted.contains(row)) << "no driver has: " << row;
    }
}

TEST(NicsPage, TellsEachQuirkWithItsSource) {
    const std::vector<std::string> lines = lines_of_the_page();
    for (const PmdProfile& profile : pmd_profiles()) {
        for (const Quirk& quirk : profile.quirks) {
            const std::string line =
                "- " + std::string(quirk.what) + " *(" + std::string(quirk.source) + ")*";
            EXPECT_NE(std::ranges::find(lines, line), lines.end()) << profile.driver << " | " << line;
        }
    }
}

TEST(PmdProfiles, TheLongestNameWinsAndAnUnknownDriverIsTrusted) {
    EXPECT_EQ(pmd_profile("net_virtio").driver, "net_virtio");
    EXPECT_EQ(pmd_profile("net_virtio_user3").driver, "net_virtio_user");
    EXPECT_EQ(pmd_profile("mlx5_pci").driver, "mlx5");
    EXPECT_EQ(pmd_profile("mlx5_auxiliary").driver, "mlx5");
    EXPECT_EQ(pmd_profile("net_e1000_igb").driver, "net_e1000_igb");
    EXPECT_TRUE(pmd_profile("net_ixgbe").loops_back);
    EXPECT_FALSE(pmd_profile("net_ixgbe_vf").loops_back) << "its frames would reach a wire";
    EXPECT_EQ(pmd_profile("net_somebody").driver, "");
    EXPECT_EQ(pmd_profile("net_somebody").spread, RxSpread::Reported);
}

TEST(PmdProfiles, ContradictNeitherThemselvesNorEachOther) {
    std::set<std::string_view> names;
    for (const PmdProfile& profile : pmd_profiles()) {
        EXPECT_TRUE(names.insert(profile.driver).second) << profile.driver << " stands twice";
        EXPECT_EQ(profile.spread_reason.empty(), profile.spread == RxSpread::Reported) << profile.driver;
        EXPECT_EQ(profile.flow.items == 0, profile.flow.actions == 0) << profile.driver;
        EXPECT_EQ(profile.rss.key_bytes != 0, profile.rss.kinds.any()) << profile.driver;
        EXPECT_FALSE(profile.family.empty()) << profile.driver;
        EXPECT_TRUE(profile.other_hash_if.empty() || !profile.other_hash_reason.empty()) << profile.driver;
        for (const Quirk& quirk : profile.quirks) {
            EXPECT_FALSE(quirk.what.empty() || quirk.source.empty()) << profile.driver;
        }
    }
}

TEST(PmdProfiles, WhatADeviceDoesOtherwiseIsTold) {
    RssReading reading;
    reading.granted = true;
    reading.kinds = {.tcp4 = true, .udp4 = true, .tcp6 = true, .udp6 = false};
    reading.key.assign(40, 1);
    reading.table.assign(128, 0);
    reading.key_taken = reading.table_taken = true;
    EXPECT_EQ(difference(pmd_profile("net_ixgbe"), reading), "udp6 is not hashed");
    EXPECT_EQ(difference(pmd_profile("net_somebody"), reading), "") << "nothing is known of it";
    reading.kinds = kAllRssKinds;
    EXPECT_EQ(difference(pmd_profile("net_ixgbe"), reading), "");
    EXPECT_EQ(difference(pmd_profile("net_ice"), reading), "the key has 40 bytes");
    EXPECT_EQ(difference(pmd_profile("net_vmxnet3"), reading), "the key can be read");
    reading.key_taken = false;
    reading.table.clear();
    EXPECT_EQ(difference(pmd_profile("net_ixgbe"), reading),
              "the key cannot be set; the table cannot be read");
}

}  // namespace profiles_test
}  // namespace penstock::drivers
