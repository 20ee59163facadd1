// SPDX-License-Identifier: Apache-2.0
// The pools in use: lookup by address and by name, order of choice, reservations, permissions, and the free
// addresses of each pool.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/ipam/allocation.hpp"
#include "control/ipam/free_ranges.hpp"
#include "control/ipam/pool.hpp"
#include "control/ipam/request.hpp"

namespace penstock::ipam {

// Why a pool was passed over; the earlier, the closer it was to serve the request.
enum class Obstacle : uint8_t { Exhausted, FamilyMissing, Disabled, OtherScope, NotAllowed, NotAutomatic };

struct PassedOver {
    Obstacle obstacle = Obstacle::Exhausted;
    std::string why;  // "no free IPv4 address"
};

// How a Service came to a pool.
enum class Choice : uint8_t {
    Free,       // requires autoAssign
    Requested,  // by address, by name, by a reservation, or by another address that the Service has there
};

class PoolTable {
 public:
    using Index = uint32_t;

    PoolTable() = default;
    // `pools` as accepted by validate().
    explicit PoolTable(std::vector<Pool> pools);

    [[nodiscard]] const std::vector<Pool>& pools() const noexcept { return pools_; }
    [[nodiscard]] const Pool& operator[](Index pool) const { return pools_[pool]; }
    // Order of free choice (LB-007).
    [[nodiscard]] const std::vector<Index>& order() const noexcept { return order_; }
    [[nodiscard]] std::optional<Index> find(const std::string& name) const;
    [[nodiscard]] std::optional<Index> containing(const IpAddr& address) const;
    // "" if no pool covers the address.
    [[nodiscard]] const std::string& name_of_pool_with(const IpAddr& address) const;

    // The Service for which an address is reserved; null if none (LB-022).
    [[nodiscard]] const kube::ObjectName* reserved_for(const IpAddr& address) const;
    // The addresses reserved for a Service, ascending; null if none.
    [[nodiscard]] const std::vector<IpAddr>* reservations_of(const kube::ObjectName& service) const;

    // Whether the pool may give new addresses to the Service (LB-007, LB-010, LB-023, LB-025); the obstacle
    // otherwise. `labels`: of the Service's namespace.
    [[nodiscard]] std::optional<PassedOver> obstacle_to(Index pool, const Request& request,
                                                        const annotations::Labels& labels,
                                                        Choice choice) const;

    [[nodiscard]] bool has_family(Index pool, IpFamily family) const;
    // The lowest free address of the pool; nullopt if it is exhausted.
    [[nodiscard]] std::optional<IpAddr> lowest_free(Index pool, IpFamily family);

    // The address has its first user, or has lost its last one. No effect on addresses outside all pools.
    void use(const IpAddr& address);
    void release(const IpAddr& address);

    // In the order of names. `is_used_by_another` returns whether another Service than its own uses a
    // reserved address.
    template <typename IsUsedByAnother>
    [[nodiscard]] std::vector<PoolUsage> usage(const IsUsedByAnother& is_used_by_another) const {
        std::vector<PoolUsage> usages;
        for (Index pool = 0; pool < pools_.size(); ++pool) {
            PoolUsage usage{.pool = pools_[pool].name, .v4 = counts(pool, 0), .v6 = counts(pool, 1)};
            for (const Reservation& reservation : pools_[pool].reservations) {
                if (is_used_by_another(reservation)) {
                    usage.reservations_in_use.push_back(reservation);
                }
            }
            usages.push_back(std::move(usage));
        }
        return usages;
    }

 private:
    // Of one family of a pool.
    struct Part {
        FreeRanges free;
        Number total = 0;  // without "buggy" addresses of a pool that avoids them
        uint64_t used = 0;
        uint64_t used_ordinary = 0;  // of these, the addresses that are in `total` and not reserved
        uint64_t reserved = 0;
    };
    [[nodiscard]] bool names_namespace(const Pool& pool, const std::string& name,
                                       const annotations::Labels& labels) const;
    [[nodiscard]] bool can_be_free(Index pool, const IpAddr& address) const;
    [[nodiscard]] AddressCounts counts(Index pool, size_t family) const;

    std::vector<Pool> pools_;  // in the order of names
    std::vector<std::array<Part, 2>> parts_;
    std::vector<Index> order_;
    std::vector<Index> enforcing_;
    std::map<IpAddr, std::pair<IpAddr, Index>> last_by_first_;
    std::map<IpAddr, kube::ObjectName> reserved_;
    std::map<kube::ObjectName, std::vector<IpAddr>> reservations_;
};

}  // namespace penstock::ipam
