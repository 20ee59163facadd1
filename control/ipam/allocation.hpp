// SPDX-License-Identifier: Apache-2.0
// Results of the allocator: the addresses of a Service or the reason why it has none, and the usage of pools.
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/ipam/pool.hpp"

namespace penstock::ipam {

// Why a request cannot be granted (LB-024). The names are reasons of the condition penstock.io/Allocated.
enum class RefusalReason : uint8_t {
    NoPool,                  // no pool may serve the Service, or the requested pool does not exist
    PoolExhausted,           // the pools that may serve the Service have no free address
    AddressTaken,            // the requested address is used by, or reserved for, another Service
    AddressOutsidePools,     // the requested or displayed address is in no pool, or is not an address
    NotAllowedForNamespace,  // the pool is restricted to other namespaces or Services (LB-010, LB-023)
    FamilyMissing,           // the pools or the Service lack an IP family
    SharingRefused,          // the users of the address do not permit to share it (LB-011)
    LoadBalancerIPConflict,  // spec.loadBalancerIP and the annotation differ (LB-009)
};
// "NoPool", ...
[[nodiscard]] const char* to_string(RefusalReason reason) noexcept;

struct Refusal {
    RefusalReason reason = RefusalReason::NoPool;
    // One sentence, at most 1024 bytes. Names up to three pools and why each was passed over.
    std::string message;
    bool operator==(const Refusal&) const = default;
};

struct AllocatedAddress {
    IpAddr address;
    std::string pool;  // "" if no pool covers the address any more (LB-014)
    bool operator==(const AllocatedAddress&) const = default;
};

// What an owned Service has. No address and no refusal cannot occur.
struct Allocation {
    std::vector<AllocatedAddress> addresses;  // in the order of the Service's families
    // With addresses: the Service keeps them although its request cannot be met, because the request is
    // malformed or contradictory, names an unknown pool, or asks for a second family that is not available.
    std::optional<Refusal> refusal;
    // LB-014: message of the Event PoolMissing; "" if pools cover all addresses.
    std::string pool_missing;
    bool operator==(const Allocation&) const = default;
};

// Number of addresses. Values above 2^64 - 1 are reported as 2^64 - 1 (an IPv6 /64 has one more).
struct AddressCounts {
    uint64_t total = 0;  // that the pool can give, reserved ones included, "buggy" ones (LB-012) excluded
    uint64_t used = 0;   // a shared address counts once
    uint64_t free = 0;   // neither used nor reserved
    bool operator==(const AddressCounts&) const = default;
};

struct PoolUsage {
    std::string pool;
    AddressCounts v4;
    AddressCounts v6;
    // Reserved addresses that other Services still use (LB-022); for the pool's condition.
    std::vector<Reservation> reservations_in_use;
    bool operator==(const PoolUsage&) const = default;
};

}  // namespace penstock::ipam
