// SPDX-License-Identifier: Apache-2.0
// The choice of addresses for one Service (LB-007, LB-009..012, LB-022..025, DUAL-004). Decides only; the
// allocator carries the decision out. Records in the User every fact that a decision depends on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/ipam/allocation.hpp"
#include "control/ipam/pool_table.hpp"
#include "control/ipam/users.hpp"

namespace penstock::ipam {

class Chooser {
 public:
    enum class Pools : uint8_t { All, Reassigning };
    struct Decision {
        std::vector<IpAddr> addresses;   // in the order of the Service's families; empty if refused
        std::optional<Refusal> refusal;  // why `addresses` is empty
    };

    // `labels_of` returns the labels of a namespace. All arguments must outlive the Chooser.
    using LabelsOf = std::function<const annotations::Labels&(const std::string&)>;
    Chooser(PoolTable& pools, const Users& users, LabelsOf labels_of)
        : pools_(pools), users_(users), labels_of_(std::move(labels_of)) {}

    // Addresses for all families of the Service, all from one pool; those that the Service has in that pool
    // are among them. With PreferDualStack, possibly of one family only, but of each family that the Service
    // has now.
    [[nodiscard]] Decision choose(User& user, Pools pools) const;

    // Addresses of the missing families, from the pool of those that the Service has (DUAL-004). Empty if
    // that pool cannot give all of them.
    [[nodiscard]] std::vector<IpAddr> complete(User& user) const;

    // Replacements, from a pool with `reassign`, of the addresses that no pool covers (LB-014); possibly one
    // more, of a family that the Service lacks. An address that a pool covers stays, so the replacement of
    // the other family must be from that pool. Empty if not all of them can be replaced.
    [[nodiscard]] std::vector<IpAddr> replace_uncovered(User& user) const;

    // Whether the Service may keep an address that it uses, or that its status shows: the address does not
    // contradict the request, and its other users agree to share it.
    [[nodiscard]] bool may_keep(User& user, const IpAddr& address) const;

    // STATUS-003: the Service has an address of another controller that no pool covers.
    [[nodiscard]] bool leaves_alone(const User& user) const;
    // Whether the Service may take over an address that another controller has given to it (STATUS-003).
    [[nodiscard]] bool may_adopt(User& user, const IpAddr& address) const;

 private:
    using Index = PoolTable::Index;
    using Candidates = std::vector<std::pair<Index, Choice>>;
    struct Attempt {
        std::vector<IpAddr> addresses;
        std::optional<PassedOver> failure;
    };

    [[nodiscard]] std::optional<PassedOver> obstacle_to(Index pool, const User& user, Choice choice) const;
    // The requested pool, also by an alias. Error: Refusal NoPool.
    [[nodiscard]] std::optional<Index> requested_pool(const Request& request) const;
    // Why the Service cannot have this address of the pool.
    [[nodiscard]] std::optional<Refusal> why_not_available(User& user, Index pool,
                                                           const IpAddr& address) const;
    [[nodiscard]] Decision choose_requested(User& user) const;
    // Addresses of `families` in this pool. Requested addresses must be in the pool and available.
    [[nodiscard]] Attempt attempt(User& user, Index pool, const std::vector<IpFamily>& families) const;
    [[nodiscard]] std::optional<IpAddr> pick(User& user, Index pool, IpFamily family) const;
    [[nodiscard]] Candidates candidates(const User& user, Pools pools) const;

    PoolTable& pools_;
    const Users& users_;
    LabelsOf labels_of_;
};

}  // namespace penstock::ipam
