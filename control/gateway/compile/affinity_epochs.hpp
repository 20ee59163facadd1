// What keeps a client's affinity entry valid over configurations: the Service's epoch and the backend's stay. The compiler gives both; the
// workers' table (dataplane/lb/affinity.hpp) compares them.
//
//   epoch   one more whenever a Service comes to have affinity that had none, or comes back, or is another Service under the old name, or
//           pins for another scope (AFF-007, GEN-010); never the same again, whatever Service asks, because ids of Services are used again
//   stay    one more whenever a backend comes back into the Service's sets (AFF-005)
//
// Service ports that pin a client together (lb::AffinityScope::Service) are members of their Service's group. A group has one epoch, and
// one number for each address that a member offers. The stay is that of the number: it begins when the first member offers the address, and
// ends when no member does. Who is a member follows from what is desired; a service port that is refused and keeps a former version keeps
// the former epoch as well, and takes over the group's when it is accepted.
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

// Whether a client's entry of `before` means something to `after`; both are versions of one service port.
[[nodiscard]] bool keeps_affinity(const model::Service& before, const model::Service& after) noexcept;

class AffinityEpochs {
 public:
    // --- First in a run, in this order ---

    // Their entries end, though the versions before and after would keep them. A group's end where all of its members are forgotten.
    void forget(std::span<const model::ServiceKey> keys);
    // What is desired of a service port changes. Null: nothing was, or is.
    void expect(const model::Service* before, const model::Service* after);
    // Completes the groups.
    void regroup();

    // --- Then ---

    // False: a service port in force has to be built again because its entries have ended.
    [[nodiscard]] bool is_current(const lb::Service& former, const model::Service& desired) const;
    // Completes `service`, just built from `desired` with its backends' ids. The former ones are what was in force before, or null.
    void apply(lb::Service& service, const model::Service& desired, const lb::Service* former,
               const model::Service* former_desired);
    // Null: nothing was in force.
    void service_is_gone(const model::ServiceKey& key, const lb::Service* former);
    // Last: the numbers of addresses that no member offers any more are free.
    void release_unused();

 private:
    using GroupName = std::pair<std::string, std::string>;  // namespace and name of the Service
    struct Endpoint {
        uint32_t number = 0;
        uint32_t offers = 0;  // service ports in force that have it, with the group's epoch
    };
    struct Group {
        uint32_t epoch = 0;
        std::set<model::ServiceKey> members;
        std::unordered_map<IpAddr, Endpoint> endpoints;
        std::vector<uint16_t> stays;    // by number
        std::deque<uint32_t> free;      // numbers, longest ago first
        std::vector<IpAddr> unoffered;  // perhaps: since the last release_unused()
    };

    [[nodiscard]] Group* group_of(const lb::Service& service);
    void take_back(const lb::Service* former);
    void apply_to_port(lb::Service& service, const lb::Service* former, bool keeps);
    void apply_to_group(lb::Service& service, Group& group);

    uint32_t newest_epoch_ = 0;
    std::vector<uint16_t> stays_;  // by BackendId
    std::unordered_set<model::ServiceKey, ServiceKeyHash> forgotten_;
    std::map<GroupName, Group> groups_;
    std::map<GroupName, std::set<model::ServiceKey>>
        entrants_;                 // of this run, also where the set is empty: these groups have changed
    std::set<GroupName> changed_;  // since the last release_unused()
};

}  // namespace penstock::gateway
