// SPDX-License-Identifier: Apache-2.0
// Validity of session affinity entries across configurations: the Service's epoch and the backend's stay. The
// compiler assigns both; the workers' table (dataplane/lb/affinity.hpp) compares them.
//
//   epoch   incremented whenever a Service without affinity gets affinity, a Service comes back, another
//           Service takes the old name, or the affinity scope changes (AFF-007, GEN-010). A value is never
//           reused, for any Service, because ids of Services are reused.
//   stay    incremented whenever a backend comes back into the Service's sets (AFF-005)
//
// Service ports that pin a client together (lb::AffinityScope::Service) are members of their Service's group.
// A group has one epoch, and one number for each address that a member offers. The stay belongs to the
// number: it begins when the first member offers the address, and ends when no member offers it. Membership
// follows from the desired state. A service port that is refused and keeps a former version also keeps the
// former epoch. It gets the group's epoch when it is accepted.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "control/gateway/compile/id_map.hpp"
#include "control/model/desired.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::gateway {

// Whether a client's entry of `before` is still valid for `after`. Both are versions of one service port.
[[nodiscard]] bool keeps_affinity(const model::Service& before, const model::Service& after) noexcept;

class AffinityEpochs {
 public:
    // --- First in a run, in this order ---

    // Ends the entries of these service ports even if the versions before and after would keep them. The
    // entries of a group end if all of its members are given.
    void forget(std::span<const model::ServiceKey> keys);
    // A service port's desired version changes. Null: absent before or after.
    void expect(const model::Service* before, const model::Service* after);
    // Completes the groups.
    void regroup();

    // --- Then ---

    // False: a service port in force must be rebuilt because its entries have ended.
    [[nodiscard]] bool is_current(const lb::Service& former, const model::Service& desired) const;
    // Completes `service`, just built from `desired` with its backends' ids. `former` and `former_desired`
    // are the versions in force before, or null.
    void apply(lb::Service& service, const model::Service& desired, const lb::Service* former,
               const model::Service* former_desired);
    // `former` null: nothing was in force.
    void service_is_gone(const model::ServiceKey& key, const lb::Service* former);
    // Last: frees the numbers of addresses that no member offers any more.
    void release_unused();

 private:
    using GroupName = std::pair<std::string, std::string>;  // namespace and name of the Service
    struct Endpoint {
        uint32_t number = 0;
        uint32_t offers = 0;  // number of service ports in force that have it, with the group's epoch
    };
    struct Group {
        uint32_t epoch = 0;
        std::set<model::ServiceKey> members;
        std::unordered_map<IpAddr, Endpoint> endpoints;
        std::vector<uint16_t> stays;    // by number
        std::deque<uint32_t> free;      // numbers, longest ago first
        std::vector<IpAddr> unoffered;  // candidates since the last release_unused()
    };

    [[nodiscard]] Group* group_of(const lb::Service& service);
    void take_back(const lb::Service* former);
    void apply_to_port(lb::Service& service, const lb::Service* former, bool keeps);
    void apply_to_group(lb::Service& service, Group& group);

    uint32_t newest_epoch_ = 0;
    std::vector<uint16_t> stays_;  // by BackendId
    std::unordered_set<model::ServiceKey, ServiceKeyHash> forgotten_;
    std::map<GroupName, Group> groups_;
    // Of this run, also if the set is empty: these groups have changed.
    std::map<GroupName, std::set<model::ServiceKey>> entrants_;
    std::set<GroupName> changed_;  // since the last release_unused()
};

}  // namespace penstock::gateway
