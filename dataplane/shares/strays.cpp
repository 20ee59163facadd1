// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shares/strays.hpp"

#include <utility>

#include "dataplane/base/check.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::shares {

Strays::Strays(Parts parts) : parts_(std::move(parts)) {
    PENSTOCK_ASSERT(parts_.shares.size() == parts_.map.shares());
}

std::optional<Strays::Candidates> Strays::of_snat(const IpAddr& address, L4Port port) const noexcept {
    const auto found = parts_.snat.find(address);
    if (found == parts_.snat.end()) {
        return std::nullopt;
    }
    const auto [primary, heir] = parts_.shares[found->second];
    const bool is_heirs = (nat::ports_in_block(nat::PortPart::Heir) >> port % 64 & 1) != 0;
    return is_heirs ? Candidates{found->second, {heir, primary}} : Candidates{found->second, {primary, heir}};
}

}  // namespace penstock::shares
