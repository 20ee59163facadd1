// SPDX-License-Identifier: Apache-2.0
// Mirrors Linux's routes, neighbours and addresses on the twins for the workers' route table. Linux decides.
// This class only reads them, and requests the resolution of next hops that a worker waits for.
//
// Neighbours, links and routes are followed message by message (kernel_routes.hpp), so the cost of a change
// does not depend on the number of routes. The routes are read again if messages are not sufficient:
// - an interface that routes use goes down (its IPv4 routes are removed without a message),
// - an address that routes have as their source is removed,
// - a next hop object changes,
// - a change is ambiguous between several similar routes.
// Addresses are read again after any change to them. The first change after a quiet period is applied at
// once, later ones at most every 10 ms, so that a routing daemon's thousand messages become a few new tables.
// If the kernel reports lost messages (ENOBUFS), everything is read again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/route_table.hpp"
#include "drivers/port/notice.hpp"

namespace penstock::drivers {

// The arguments of route::RouteTable::build().
struct MirroredState {
    std::vector<route::Route> routes;          // of a multipath route: its first hop that is a twin
    std::vector<route::Neighbour> neighbours;  // sorted by id
    std::vector<route::LocalAddress> addresses;
    std::vector<route::LocalAddress>
        vips;                              // on twins by VIP presence (vip_addresses.hpp); not in `addresses`
    std::vector<route::EgressPort> ports;  // in NicPort order
};

struct MirrorChange {
    // A route, an address, a link, a MAC, or whether a neighbour is usable: to be published to the workers at
    // once.
    bool forwarding = false;
    // Only a neighbour's state, its usability unchanged (reachable, stale): for status, and for confirm().
    bool states = false;
    [[nodiscard]] bool any() const noexcept { return forwarding || states; }
};

class NetlinkMirror {
 public:
    using Clock = std::chrono::steady_clock;
    struct Twin {
        NicPortId port;
        std::string name;
    };

    // Subscribes, then reads everything once; state() is complete afterwards. NotFound: a twin does not
    // exist.
    static Result<std::unique_ptr<NetlinkMirror>> open(const std::vector<Twin>& twins,
                                                       const NoticeSink& sink);
    ~NetlinkMirror();
    NetlinkMirror(const NetlinkMirror&) = delete;
    NetlinkMirror& operator=(const NetlinkMirror&) = delete;

    [[nodiscard]] int fd() const noexcept;  // readable when the kernel has sent messages

    // Reads all pending messages and returns the changes in state() since the last call that returned
    // changes. A change within 10 ms of the last one is kept for a later call, so call it every few
    // milliseconds, not only when fd() is readable. Blocks at most for the duration of a dump.
    MirrorChange poll(Clock::time_point now);

    [[nodiscard]] const MirroredState& state() const noexcept;
    // True if poll() has pending work although fd() is not readable.
    [[nodiscard]] bool has_changes_waiting() const noexcept;
    // The number of full reads of the routes; the first one is in open().
    [[nodiscard]] uint64_t route_readings() const noexcept;

    // Requests the MAC of a next hop from the kernel (NTF_USE), which sends ARP or ND through the twin at
    // once. Repeated calls for the same address have no effect for one second, or for three seconds after a
    // failure.
    void resolve(NicPortId port, const IpAddr& address, Clock::time_point now);
    // Keeps a next hop fresh that workers send to. The kernel does not see flow traffic, so the entry would
    // become stale and stay so. If it is stale, this call makes the kernel probe it. Its MAC stays in use
    // during the probe.
    void confirm(const route::Neighbour& neighbour, Clock::time_point now);

 private:
    struct Impl;
    explicit NetlinkMirror(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::drivers
