// SPDX-License-Identifier: Apache-2.0
#include "control/shares/plan.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace penstock::shares {
namespace {

// FNV-1a. This and draw() give the same values in every process and version.
uint64_t hash_of(std::string_view name) noexcept {
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char character : name) {
        hash = (hash ^ static_cast<uint8_t>(character)) * 0x100000001b3ULL;
    }
    return hash;
}

// The finalizer of MurmurHash3.
uint64_t draw(uint64_t name, uint64_t share, uint64_t number) noexcept {
    uint64_t hash = name ^ (share << 32 | number);
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdULL;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return hash ^ hash >> 33;
}

}  // namespace

std::vector<std::string> by_preference(const std::vector<Gateway>& gateways, size_t share) {
    std::vector<std::pair<uint64_t, std::string>> ranked;
    for (const Gateway& gateway : gateways) {
        const uint64_t name = hash_of(gateway.name);
        uint64_t best = 0;
        for (uint64_t number = 0; number < gateway.weight; ++number) {
            best = std::max(best, draw(name, share, number));
        }
        ranked.emplace_back(best, gateway.name);
    }
    std::ranges::sort(ranked, std::greater());
    std::vector<std::string> names;
    for (auto& [best, name] : ranked) {
        names.push_back(std::move(name));
    }
    return names;
}

const Gateway* Plan::gateway(std::string_view name) const noexcept {
    const auto found = std::ranges::find(gateways, name, &Gateway::name);
    return found == gateways.end() ? nullptr : &*found;
}

Role Plan::role(size_t share, std::string_view gateway) const noexcept {
    const Share& of = shares[share];
    return of.primary == gateway ? Role::Primary : of.heir == gateway ? Role::Heir : Role::None;
}

uint64_t Plan::common_shares(std::string_view one, std::string_view other) const noexcept {
    static_assert(kSharesMax <= 64);
    uint64_t common = 0;
    for (size_t share = 0; share < shares.size() && one != other; ++share) {
        const bool has_both = role(share, one) != Role::None && role(share, other) != Role::None;
        common |= uint64_t{has_both} << share;
    }
    return common;
}

ShareMap Plan::map() const {
    std::map<Prefix, uint8_t> placed;
    for (size_t share = 0; share < shares.size(); ++share) {
        for (const Prefix& vips : shares[share].vips) {
            placed.emplace(vips, static_cast<uint8_t>(share));
        }
        for (const IpAddr& snat : shares[share].snat) {
            placed.emplace(Prefix::host(snat), static_cast<uint8_t>(share));
        }
    }
    return {static_cast<uint8_t>(shares.size()), std::move(placed), {.vips = spread, .key = spread_key}};
}

const char* to_string(Role role) noexcept {
    switch (role) {
        case Role::None:
            break;
        case Role::Primary:
            return "primary";
        case Role::Heir:
            return "heir";
    }
    return "none";
}

}  // namespace penstock::shares
