// SPDX-License-Identifier: Apache-2.0
// The share of a VIP (docs/adr/0041). It is arithmetic, so every gateway with the same plan computes the same
// one.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::shares {

// At most kSharesMax shares, numbered from 0.
inline constexpr uint8_t kSharesMax = 64;

// A hash of an address that is the same in every process and version.
[[nodiscard]] inline uint64_t share_hash(const IpAddr& address) noexcept {
    // The finalizer of MurmurHash3 over each half.
    const auto mix = [](uint64_t value) {
        value = (value ^ value >> 33) * 0xff51afd7ed558ccdULL;
        value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53ULL;
        return value ^ value >> 33;
    };
    return mix(mix(load<uint64_t>(address.bytes().data())) ^ load<uint64_t>(address.bytes().data() + 8));
}

// Leads from a VIP to its share.
class ShareMap {
 public:
    // `shares`: 1 to kSharesMax. `placed`: VIPs that do not follow the hash; of several prefixes with a VIP
    // the longest counts.
    ShareMap(uint8_t shares, std::map<Prefix, uint8_t> placed);

    [[nodiscard]] uint8_t share_of(const IpAddr& vip) const;
    [[nodiscard]] uint8_t shares() const noexcept { return shares_; }

 private:
    uint8_t shares_;
    std::map<Prefix, uint8_t> placed_;
    // The lengths of prefixes in placed_, the longest first.
    std::vector<uint8_t> v4_lengths_, v6_lengths_;
};

}  // namespace penstock::shares
