// Linux's main routing tables of both families, as dumps and change messages tell them. A machine without I/O: facts in
// (netlink_messages.hpp), the list of routes out.
//
// A message names a route by destination, type of service and metric. Several routes may share those (`ip route append`), which a
// message of removal tells apart by all its other attributes, and one of replacement does not. What cannot be decided is reported, and the
// caller reads the tables anew. A dump leaves out what stands between the hops of an IPv6 multipath route and has its key: a route by a
// device, a throw route (Linux 6.18, fib6_dump_node(): it goes on behind the last hop). What the kernel changes in silence is the caller's
// to know: a link that goes down, an address or a next hop object that routes depend on.
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
    // To be filled by a dump. `former`: what was known right before it; null: nothing, or messages were lost.
    explicit KernelRoutes(const KernelRoutes* former = nullptr);
    void dumped(RouteFact fact);

    enum class Applied : uint8_t {
        Changed,
        Nothing,  // it was so already
        Unclear,  // which of several routes is meant cannot be told, or it is not known: everything is to be read anew
    };
    // Whether a message may be older than the dump, which has its outcome already.
    enum class Sent : uint8_t { SinceDump, PerhapsBeforeIt };
    Applied apply(RouteFact fact, Sent sent);

    // Whether some route would be affected without a message: an interface that goes down takes routes along, and so does an address that
    // they name as their source, or a next hop object.
    [[nodiscard]] bool uses_interface(int ifindex) const { return interfaces_.contains(ifindex); }
    [[nodiscard]] bool uses_source(const IpAddr& address) const { return sources_.contains(address); }
    [[nodiscard]] bool uses_next_hop_object(uint32_t id) const { return next_hops_.contains(id); }
    [[nodiscard]] bool uses_next_hop_objects() const { return !next_hops_.empty(); }

    // Sorted by destination, metric, egress, gateway and the other egresses, each once. O(n).
    [[nodiscard]] std::vector<route::Route> list() const;

 private:
    using Routes = std::multimap<RouteKey, RouteFact>;
    void add(RouteFact fact);
    void remove(Routes::iterator route);
    void count(const RouteFact& fact, int by);
    // The route that the fact is about, or the end of those with its key.
    [[nodiscard]] Routes::iterator find(const RouteFact& fact);

    Routes routes_;
    // A replacement that may be older than the dump may mean a route that has gone since, and not the one route that the dump found, if
    // there were several with its key: those keys, where they are known.
    bool knows_several_ = false;
    std::set<RouteKey> several_;
    std::unordered_map<int, uint32_t> interfaces_;
    std::unordered_map<IpAddr, uint32_t> sources_;
    std::unordered_map<uint32_t, uint32_t> next_hops_;
};

}  // namespace penstock::drivers
