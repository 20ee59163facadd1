// SPDX-License-Identifier: Apache-2.0
// State of address allocation at one moment, as plain values for pages, metrics and penstockctl.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/ipam/allocation.hpp"
#include "control/ipam/pool.hpp"
#include "control/kube/object_id.hpp"
#include "control/kube/status/write_status.hpp"

namespace penstock::sync {

// A Service that has no address, or not the requested one.
struct RefusedService {
    kube::ObjectName service;
    ipam::RefusalReason reason = ipam::RefusalReason::NoPool;
    std::string message;
    bool operator==(const RefusedService&) const = default;
};

struct AddressStatus {
    // "following" another leader, "refreshing", "fencing", "assigning"; "waiting" for the first lists.
    std::string phase;
    std::vector<ipam::Pool> pools;       // in force, in the order of names
    std::vector<ipam::PoolUsage> usage;  // one for each of `pools`
    std::string pools_refused;           // why the newest list of pools is not in force; "" otherwise
    // Addresses by Service, with their pools, in the order of names.
    std::map<kube::ObjectName, std::vector<ipam::AllocatedAddress>> addresses;
    std::vector<RefusedService> refused;      // in the order of names
    std::optional<kube::WriteStatus> writes;  // empty in the folder mode, which has no leader and no status
};

}  // namespace penstock::sync
