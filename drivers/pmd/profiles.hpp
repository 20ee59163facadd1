// The profile of each PMD (capabilities.hpp), each in a file of the PMD's name. The facts are from DPDK
// 22.11; paths are relative to its source tree.
#pragma once

#include "drivers/port/capabilities.hpp"

namespace penstock::drivers {

extern const PmdProfile kAfPacketProfile;
extern const PmdProfile kAfXdpProfile;
extern const PmdProfile kBondingProfile;
extern const PmdProfile kEmProfile;
extern const PmdProfile kEnaProfile;
extern const PmdProfile kI40eProfile;
extern const PmdProfile kIavfProfile;
extern const PmdProfile kIceProfile;
extern const PmdProfile kIgbProfile;
extern const PmdProfile kIxgbeProfile;
extern const PmdProfile kIxgbeVfProfile;
extern const PmdProfile kMemifProfile;
extern const PmdProfile kMlx5Profile;
extern const PmdProfile kNullProfile;
extern const PmdProfile kPcapProfile;
extern const PmdProfile kRingProfile;
extern const PmdProfile kTapProfile;
extern const PmdProfile kVhostProfile;
extern const PmdProfile kVirtioProfile;
extern const PmdProfile kVirtioUserProfile;
extern const PmdProfile kVmxnet3Profile;

// The common RSS properties of Intel's Ethernet families.
inline constexpr RssExpectation kIntelRss40{
    .kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable};
inline constexpr RssExpectation kIntelRss52{
    .kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 52, .table = RssAccess::Settable};

}  // namespace penstock::drivers
