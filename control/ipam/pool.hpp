// SPDX-License-Identifier: Apache-2.0
// Address pools: the addresses that Penstock may give to Services of type LoadBalancer, and to which of them
// (LB-007..015, LB-022..025). Plain values; the allocator (allocator.hpp) decides by them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/kube/object_id.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::ipam {

// Both ends are included and have one family.
struct AddressRange {
    IpAddr first;
    IpAddr last;
    auto operator<=>(const AddressRange&) const = default;
};

// An address that only one Service gets, also while no such Service exists (LB-022).
struct Reservation {
    IpAddr address;
    kube::ObjectName service;
    auto operator<=>(const Reservation&) const = default;
};

struct Pool {
    std::string name;
    std::vector<AddressRange> ranges;  // disjoint, ascending; sorted by validate() (pool_rules.hpp)
    // The pool may serve Services that request neither an address nor a pool (LB-007).
    bool auto_assign = true;
    bool avoid_buggy_ips = false;  // IPv4 addresses that end in .0 or .255 are not given out (LB-012)
    // Of restricted pools: lower non-zero values first, 0 last (LB-007).
    int32_t priority = 0;
    // A pool with any of these three is restricted: it serves only Services in one of the namespaces (listed,
    // or selected by the Namespace's labels) and with matching labels. An absent restriction allows all.
    std::vector<std::string> namespaces;
    std::optional<annotations::Selector> namespace_selector;
    std::optional<annotations::Selector> service_selector;
    // LB-023: the namespaces of this pool get addresses only from their enforcing pools.
    bool enforce = false;
    bool internal = false;  // LB-025: serves only Services that request an internal address (ANN-17)
    bool disabled = false;  // LB-025: gives no new address
    // LB-014: Services that this pool may serve move off addresses that no pool covers any more, as soon as
    // they can get others.
    bool reassign = false;
    std::vector<Reservation> reservations;
    bool operator==(const Pool&) const = default;

    [[nodiscard]] bool is_pinned() const noexcept {
        return !namespaces.empty() || namespace_selector || service_selector;
    }
};

}  // namespace penstock::ipam
