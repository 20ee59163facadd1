// SPDX-License-Identifier: Apache-2.0
// The share of a VIP (docs/adr/0041). It is arithmetic, so every gateway with the same plan computes the same
// one.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::shares {

// At most kSharesMax shares, numbered from 0.
inline constexpr uint8_t kSharesMax = 64;

namespace detail {
// The finalizer of MurmurHash3.
[[nodiscard]] inline uint64_t mixed(uint64_t value) noexcept {
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdULL;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return value ^ value >> 33;
}
}  // namespace detail

// A hash of an address that is the same in every process and version.
[[nodiscard]] inline uint64_t share_hash(const IpAddr& address) noexcept {
    using detail::mixed;
    return mixed(mixed(load<uint64_t>(address.bytes().data())) ^ load<uint64_t>(address.bytes().data() + 8));
}

// A hash of a client's address and a VIP, by a key of the plan (docs/adr/0051). It has no ports, so that
// fragments and ICMP errors have the hash of their flow. Fixed like share_hash().
[[nodiscard]] inline uint64_t spread_hash(uint64_t key, const IpAddr& vip, const IpAddr& client) noexcept {
    return detail::mixed(share_hash(client) ^ (share_hash(vip) + key) * 0x9e3779b97f4a7c15ULL);
}

// VIPs of which each client has a share of its own.
struct SpreadVips {
    std::vector<Prefix> vips;
    uint64_t key = 0;  // of spread_hash()
};

// Numbers of prefixes. find() searches a map for each length that occurs.
class PrefixNumbers {
 public:
    PrefixNumbers() = default;
    explicit PrefixNumbers(const std::map<Prefix, uint8_t>& numbers);
    // Of the longest prefix with the address. Null: there is none. Any thread.
    [[nodiscard]] const uint8_t* find(const IpAddr& address) const noexcept;

 private:
    struct Bits {  // of an address or a mask, in memory order
        uint64_t first, second;
        auto operator<=>(const Bits&) const = default;
    };
    struct Length {
        Bits mask;
        std::vector<std::pair<Bits, uint8_t>> numbers;  // of the prefixes with this length, sorted
    };
    std::vector<Length> v4_, v6_;  // the longest first
};

// Maps a VIP, or a VIP and a client, to a share.
class ShareMap {
 public:
    // `shares`: 1 to kSharesMax. `placed`: VIPs that do not follow the hash; of several prefixes with a VIP
    // the longest counts. Spread VIPs follow neither.
    ShareMap(uint8_t shares, const std::map<Prefix, uint8_t>& placed, const SpreadVips& spread = {});

    // The share of a VIP that is not spread.
    [[nodiscard]] uint8_t share_of(const IpAddr& vip) const noexcept {
        const uint8_t* const placed = placed_.find(vip);
        return placed != nullptr ? *placed : static_cast<uint8_t>(share_hash(vip) % shares_);
    }
    // The share of a client's packets to a VIP.
    [[nodiscard]] uint8_t share_of(const IpAddr& vip, const IpAddr& client) const noexcept {
        return is_spread(vip) ? share_of_spread(vip, client) : share_of(vip);
    }
    // The same if the VIP is spread.
    [[nodiscard]] uint8_t share_of_spread(const IpAddr& vip, const IpAddr& client) const noexcept {
        return static_cast<uint8_t>(spread_hash(spread_key_, vip, client) % shares_);
    }
    [[nodiscard]] bool is_spread(const IpAddr& vip) const noexcept { return spread_.find(vip) != nullptr; }
    [[nodiscard]] uint8_t shares() const noexcept { return shares_; }

 private:
    uint8_t shares_;
    PrefixNumbers placed_;
    PrefixNumbers spread_;
    uint64_t spread_key_;
};

}  // namespace penstock::shares
