// SPDX-License-Identifier: Apache-2.0
// Linux's main routing tables of both families, from dumps and change messages. A machine without I/O: its
// inputs are facts (netlink_messages.hpp), its output is the list of routes.
//
// A message identifies a route by destination, type of service and metric. Several routes may share these
// (`ip route append`). A removal message distinguishes them by all other attributes, a replacement message
// does not. Ambiguous changes are reported, and the caller reads the tables again. A dump omits routes that
// stand between the hops of an IPv6 multipath route and have its key: a route by a device, a throw route
// (Linux 6.18, fib6_dump_node(), continues after the last hop). Changes that the kernel makes without a
// message are the caller's responsibility: a link that goes down, or an address or next hop object that
// routes depend on.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/route/route_table.hpp"
#include "drivers/host/netlink_messages.hpp"

namespace penstock::drivers {

class KernelRoutes {
 public:
    // To be filled by a dump. `former`: the routes known right before the dump; null: none, or messages were
    // lost.
    explicit KernelRoutes(const KernelRoutes* former = nullptr);
    void dumped(RouteFact fact);

    enum class Applied : uint8_t {
        Changed,
        Nothing,  // no change
        Unclear,  // an unknown route, or ambiguous between several: all tables must be read again
    };
    // Whether a message may be older than the dump, which then includes its result already.
    enum class Sent : uint8_t { SinceDump, PerhapsBeforeIt };
    Applied apply(RouteFact fact, Sent sent);

    // Whether a change without messages would affect some route. An interface that goes down removes its
    // routes; so does the removal of an address that routes have as preferred source, or of a next hop
    // object.
    [[nodiscard]] bool uses_interface(int ifindex) const { return interfaces_.contains(ifindex); }
    [[nodiscard]] bool uses_source(const IpAddr& address) const { return sources_.contains(address); }
    [[nodiscard]] bool uses_next_hop_object(uint32_t id) const { return next_hops_.contains(id); }
    [[nodiscard]] bool uses_next_hop_objects() const { return !next_hops_.empty(); }

    // Sorted by destination, metric, egress, gateway and the other egresses, without duplicates. O(n).
    [[nodiscard]] std::vector<route::Route> list() const;

 private:
    using Routes = std::multimap<RouteKey, RouteFact>;
    void add(RouteFact fact);
    void remove(Routes::iterator route);
    void count(const RouteFact& fact, int by);
    // The route that the fact refers to, or the end of the routes with its key.
    [[nodiscard]] Routes::iterator find(const RouteFact& fact);

    Routes routes_;
    // The keys under which several routes were known, if that is known. Under such a key, a replacement that
    // may be older than the dump is ambiguous. It may refer to a route that has been removed since, and not
    // to the one that the dump found.
    bool knows_several_ = false;
    std::set<RouteKey> several_;
    std::unordered_map<int, uint32_t> interfaces_;
    std::unordered_map<IpAddr, uint32_t> sources_;
    std::unordered_map<uint32_t, uint32_t> next_hops_;
};

}  // namespace penstock::drivers
