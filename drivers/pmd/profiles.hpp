// What is known of each PMD (capabilities.hpp), in a file of its name. Facts come from DPDK 22.11: paths are of its source tree.
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

// What Intel's Ethernet families have in common.
inline constexpr RssExpectation kIntelRss40{
    .kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable};
inline constexpr RssExpectation kIntelRss52{
    .kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 52, .table = RssAccess::Settable};

}  // namespace penstock::drivers
