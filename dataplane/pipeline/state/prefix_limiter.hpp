// SPDX-License-Identifier: Apache-2.0
// Token buckets by the prefix of an answer's destination address. Answers to one network do not use up those
// of another network. Linux limits its ICMP errors by destination in the same way (icmp_ratelimit). A fixed
// array, indexed by a keyed hash: some prefixes share a bucket, but an attacker cannot predict which.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/pipeline/state/reject_limiter.hpp"

namespace penstock::pipeline {

class PrefixLimiter {
 public:
    PrefixLimiter(uint32_t per_second, uint32_t burst, TscRate rate) noexcept {
        buckets_.fill(RejectLimiter(per_second, burst, rate));
    }

    // The bucket of answers to `destination`.
    [[nodiscard]] RejectLimiter& of(const IpAddr& destination, const nat::ReplyOwner& keyed) noexcept {
        return buckets_[keyed.client_hash(prefix_of(destination)) % buckets_.size()];
    }

 private:
    // The range from which one sender may choose addresses: an IPv4 network of the longest length that BGP
    // carries (/24), or the usual IPv6 assignment to a site (/56).
    static IpAddr prefix_of(const IpAddr& address) noexcept {
        std::array<uint8_t, 16> bytes = address.bytes();
        if (address.is_v4()) {
            return IpAddr::v4(bytes[12], bytes[13], bytes[14], 0);
        }
        constexpr size_t kSiteBytes = 7;
        for (size_t at = kSiteBytes; at < bytes.size(); ++at) {
            bytes[at] = 0;
        }
        return IpAddr::v6(bytes);
    }

    std::array<RejectLimiter, limits::kErrorPrefixes> buckets_;
};

}  // namespace penstock::pipeline
