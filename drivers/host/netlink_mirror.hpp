// Linux's routes, neighbours and addresses on the twins, as the workers' route table wants them. Linux decides; this only listens, and
// asks the kernel to resolve what a worker waits for.
//
// Neighbours, links and routes are followed message by message (kernel_routes.hpp), so that a change costs the same however many routes
// there are. The routes are read anew where messages cannot tell: an interface goes down that routes lead through (IPv4 routes go with it
// in silence), an address goes that they name as their source, a next hop object changes, or it is unclear which of several alike is meant.
// Addresses are read anew after any change to them. A change after silence is taken up at once, and then every 10 ms at most, so that a
// routing daemon's thousand messages are a few new tables. When the kernel reports that messages were lost (ENOBUFS), everything is read
// anew.
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
        vips;  // on twins by VIP presence (vip_addresses.hpp); none of `addresses`
    std::vector<route::EgressPort> ports;  // in NicPort order
};

struct MirrorChange {
    bool forwarding =
        false;  // a route, an address, a link, a MAC, or whether a neighbour is usable: workers must hear of it now
    bool states =
        false;  // only a neighbour's state among equals (reachable, stale): for status, and for re-confirming
    [[nodiscard]] bool any() const noexcept { return forwarding || states; }
};

class NetlinkMirror {
 public:
    using Clock = std::chrono::steady_clock;
    struct Twin {
        NicPortId port;
        std::string name;
    };

    // Subscribes, then reads everything once; state() is complete afterwards. NotFound: a twin does not exist.
    static Result<std::unique_ptr<NetlinkMirror>> open(const std::vector<Twin>& twins,
                                                       const NoticeSink& sink);
    ~NetlinkMirror();
    NetlinkMirror(const NetlinkMirror&) = delete;
    NetlinkMirror& operator=(const NetlinkMirror&) = delete;

    [[nodiscard]] int fd() const noexcept;  // readable when the kernel has something to say

    // Hears the kernel out and says what changed in state() since the last call that said so. A change within 10 ms of the last is kept for
    // a later call, so call it every few milliseconds, not only when fd() is readable. Never blocks for longer than a dump takes.
    MirrorChange poll(Clock::time_point now);

    [[nodiscard]] const MirroredState& state() const noexcept;
    // Whether poll() has something to do later although fd() is not readable.
    [[nodiscard]] bool has_changes_waiting() const noexcept;
    // How often the routes were read as a whole; the first time is open().
    [[nodiscard]] uint64_t route_readings() const noexcept;

    // Asks the kernel for the MAC of a next hop (NTF_USE): it sends ARP or ND through the twin at once. Asked again for the same address
    // within a second, or within three after it failed, it does nothing.
    void resolve(NicPortId port, const IpAddr& address, Clock::time_point now);
    // A next hop that workers send to. The kernel sees no flow traffic and would let it go stale unasked; if it is stale, this makes the
    // kernel probe it. While the probe runs its MAC stays in use.
    void confirm(const route::Neighbour& neighbour, Clock::time_point now);

 private:
    struct Impl;
    explicit NetlinkMirror(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::drivers
