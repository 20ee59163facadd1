// Finds the profile for a driver name.
#include "drivers/pmd/profiles.hpp"

#include <array>

namespace penstock::drivers {
namespace {

// In alphabetical order.
constexpr std::array kProfiles = {
    &kAfPacketProfile, &kAfXdpProfile, &kBondingProfile, &kEmProfile,     &kEnaProfile,
    &kI40eProfile,     &kIavfProfile,  &kIceProfile,     &kIgbProfile,    &kIxgbeProfile,
    &kIxgbeVfProfile,  &kMemifProfile, &kMlx5Profile,    &kNullProfile,   &kPcapProfile,
    &kRingProfile,     &kTapProfile,   &kVhostProfile,   &kVirtioProfile, &kVirtioUserProfile,
    &kVmxnet3Profile,
};

constexpr PmdProfile kUnknown{};

}  // namespace

const PmdProfile& pmd_profile(std::string_view driver) noexcept {
    // net_virtio_user0 also begins with net_virtio: the longest name wins.
    const PmdProfile* best = &kUnknown;
    for (const PmdProfile* profile : kProfiles) {
        if (driver.starts_with(profile->driver) && profile->driver.size() > best->driver.size()) {
            best = profile;
        }
    }
    return *best;
}

std::span<const PmdProfile* const> pmd_profiles() noexcept {
    return kProfiles;
}

}  // namespace penstock::drivers
