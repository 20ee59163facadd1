// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/netlink_mirror.hpp"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "dataplane/base/limits.hpp"
#include "drivers/host/kernel_neighbours.hpp"
#include "drivers/host/kernel_routes.hpp"
#include "drivers/host/netlink_messages.hpp"
#include "drivers/host/netlink_sockets.hpp"

namespace penstock::drivers {
namespace {

// Minimum time between rebuilds of state(). The first change after a quiet period is applied at once. After a
// long round (a full routing table) the gap is four times its duration, so rounds never take more than a
// fifth of the thread.
constexpr std::chrono::milliseconds kRoundGap{10};
constexpr int kRoundGapFactor = 4;
// After each round the control thread builds the workers' table again, at 0.25 us per route. With this gap,
// 100,000 flapping routes cost a quarter of that thread.
constexpr std::chrono::microseconds kRoundGapPerRoute{1};

}  // namespace

struct NetlinkMirror::Impl {
    NoticeSink sink;
    NetlinkSockets sockets;
    TwinsByIndex twins_by_index;
    std::unordered_map<uint8_t, int> ifindex_of;

    KernelNeighbours neighbours;
    bool reported_full = false;

    MirroredState state;
    MirrorChange pending;
    KernelRoutes routes;
    bool knows_routes = false;     // all messages about them have been read
    bool routes_changed = false;   // since state.routes was built from them
    bool routes_dirty = false;     // they must be read again
    bool addresses_dirty = false;  // the addresses must be read again
    // Pending messages may be older than the last reading of the routes.
    bool overlaps = false;
    uint64_t route_readings = 0;
    bool lost = false;  // messages were lost
    Clock::time_point round_allowed{};

    Status read_everything();
    Status read_routes();
    Status read_addresses();
    Status read_neighbours();
    Status read_links();

    void take_message(const nlmsghdr* message);
    void take_link(const LinkFact& fact);
    void take_route(RouteFact fact);
    // True if the kernel may have changed routes without a message about them.
    [[nodiscard]] bool takes_routes_along(const nlmsghdr* message) const;
    void take_neighbour(const NeighbourFact& fact);
    void receive_messages();
    [[nodiscard]] bool has_changes() const noexcept;
    Status catch_up();
    void ask_kernel(NicPortId port, const IpAddr& address);
    void report(NoticeLevel level, const std::string& text) const {
        if (sink) {
            sink(level, text);
        }
    }
};

Status NetlinkMirror::Impl::read_routes() {
    KernelRoutes fresh(knows_routes ? &routes : nullptr);
    bool is_whole = true;
    ++route_readings;
    for (const int family : {AF_INET, AF_INET6}) {
        rtmsg header{};
        header.rtm_family = static_cast<unsigned char>(family);
        header.rtm_table = RT_TABLE_MAIN;
        bool interrupted = false;
        const auto take = [&](const nlmsghdr* message) {
            if (auto fact = route_fact_in(message, twins_by_index)) {
                fact->change = RouteFact::Change::Added;
                fresh.dumped(std::move(*fact));
            }
        };
        PENSTOCK_TRY_STATUS(sockets.dump(RTM_GETROUTE, header, take, &interrupted));
        is_whole = is_whole && !interrupted;
    }
    routes = std::move(fresh);
    knows_routes = true;
    routes_changed = true;
    overlaps = true;
    // An interrupted dump may lack routes that did not change.
    routes_dirty = !is_whole;
    return {};
}

Status NetlinkMirror::Impl::read_addresses() {
    std::vector<route::LocalAddress> addresses;
    std::vector<route::LocalAddress> vips;
    for (const int family : {AF_INET, AF_INET6}) {
        ifaddrmsg header{};
        header.ifa_family = static_cast<unsigned char>(family);
        const auto take = [&](const nlmsghdr* message) {
            if (const auto fact = address_in(message, twins_by_index)) {
                (fact->is_vip ? vips : addresses).push_back(fact->address);
            }
        };
        PENSTOCK_TRY_STATUS(sockets.dump(RTM_GETADDR, header, take));
    }
    // An interrupted dump may contain an address twice.
    const auto by_address = [](const route::LocalAddress& a) {
        return std::tuple(a.port, a.address, a.prefix_length);
    };
    for (auto* list : {&addresses, &vips}) {
        std::ranges::sort(*list, {}, by_address);
        list->erase(std::ranges::unique(*list).begin(), list->end());
    }
    pending.forwarding = pending.forwarding || addresses != state.addresses || vips != state.vips;
    state.addresses = std::move(addresses);
    state.vips = std::move(vips);
    addresses_dirty = false;
    return {};
}

Status NetlinkMirror::Impl::read_neighbours() {
    ndmsg header{};
    header.ndm_family = AF_UNSPEC;
    KernelNeighbours::Keys seen;
    auto done = sockets.dump(RTM_GETNEIGH, header, [&](const nlmsghdr* message) {
        if (const auto fact = neighbour_in(message, twins_by_index)) {
            take_neighbour(*fact);
            seen.insert({fact->port, fact->address});
        }
    });
    if (!done) {
        return done;
    }
    // Neighbours that were removed do not occur in the dump.
    if (neighbours.keep_only(seen)) {
        pending.forwarding = true;
    }
    return {};
}

Status NetlinkMirror::Impl::read_links() {
    ifinfomsg header{};
    header.ifi_family = AF_UNSPEC;
    return sockets.dump(RTM_GETLINK, header, [&](const nlmsghdr* message) { take_message(message); });
}

Status NetlinkMirror::Impl::read_everything() {
    auto done = read_links();
    if (done) {
        done = read_neighbours();
    }
    if (done) {
        done = read_addresses();
    }
    if (done) {
        done = read_routes();
    }
    pending.forwarding = true;
    return done;
}

void NetlinkMirror::Impl::take_link(const LinkFact& fact) {
    const auto entry = std::ranges::find(state.ports, fact.port, &route::EgressPort::id);
    route::EgressPort now = *entry;
    now.link_up = fact.up;
    now.mtu = fact.mtu.value_or(now.mtu);
    now.mac = fact.mac.value_or(now.mac);
    if (now != *entry) {
        *entry = now;
        pending.forwarding = true;
        // A link that comes back revives next hops of IPv4 multipath routes without a message.
        routes_dirty = true;
    }
}

void NetlinkMirror::Impl::take_neighbour(const NeighbourFact& fact) {
    switch (neighbours.apply(fact)) {
        case KernelNeighbours::Applied::Nothing:
            break;
        case KernelNeighbours::Applied::State:
            pending.states = true;
            break;
        case KernelNeighbours::Applied::Forwarding:
            pending.forwarding = true;
            break;
        case KernelNeighbours::Applied::Full:
            if (!reported_full) {
                report(NoticeLevel::Warning, "more than " + std::to_string(limits::kNeighboursMax) +
                                                 " neighbours on the twins: " + fact.address.to_string() +
                                                 " and others are unreachable");
                reported_full = true;
            }
            break;
    }
}

void NetlinkMirror::Impl::take_route(RouteFact fact) {
    switch (routes.apply(std::move(fact),
                         overlaps ? KernelRoutes::Sent::PerhapsBeforeIt : KernelRoutes::Sent::SinceDump)) {
        case KernelRoutes::Applied::Changed:
            routes_changed = true;
            break;
        case KernelRoutes::Applied::Nothing:
            break;
        case KernelRoutes::Applied::Unclear:
            routes_dirty = true;
            break;
    }
}

bool NetlinkMirror::Impl::takes_routes_along(const nlmsghdr* message) const {
    if (const auto downed = downed_interface_in(message)) {
        return routes.uses_interface(*downed);
    }
    if (const auto address = removed_address_in(message)) {
        return routes.uses_source(*address);
    }
    if (const auto object = next_hop_object_in(message)) {
        // A replaced object may be part of a group that routes use.
        return routes.uses_next_hop_object(object->id) ||
               (object->is_replaced && routes.uses_next_hop_objects());
    }
    return false;
}

void NetlinkMirror::Impl::take_message(const nlmsghdr* message) {
    routes_dirty = routes_dirty || takes_routes_along(message);
    if (auto route = route_fact_in(message, twins_by_index)) {
        take_route(std::move(*route));
    } else if (const auto link = link_in(message, twins_by_index)) {
        take_link(*link);
    } else if (const auto neighbour = neighbour_in(message, twins_by_index)) {
        take_neighbour(*neighbour);
    } else if (touches_addresses(message, twins_by_index)) {
        addresses_dirty = true;
    }
}

void NetlinkMirror::Impl::receive_messages() {
    switch (sockets.receive([this](const nlmsghdr* message) { take_message(message); })) {
        case NetlinkSockets::Received::All:
            overlaps = false;
            break;
        case NetlinkSockets::Received::Some:
            break;
        case NetlinkSockets::Received::Lost:
            lost = true;
            break;
    }
}

void NetlinkMirror::Impl::ask_kernel(NicPortId port, const IpAddr& address) {
    if (const auto ifindex = ifindex_of.find(port.value); ifindex != ifindex_of.end()) {
        sockets.request_resolution(ifindex->second, address);
    }
}

Result<std::unique_ptr<NetlinkMirror>> NetlinkMirror::open(const std::vector<Twin>& twins,
                                                           const NoticeSink& sink) {
    auto impl = std::make_unique<Impl>();
    impl->sink = sink;
    for (const Twin& twin : twins) {
        const unsigned index = if_nametoindex(twin.name.c_str());
        if (index == 0) {
            return fail(Errc::NotFound, "twin " + twin.name + ": no such interface");
        }
        impl->twins_by_index[static_cast<int>(index)] = twin.port;
        impl->ifindex_of[twin.port.value] = static_cast<int>(index);
        route::EgressPort port;
        port.id = twin.port;
        port.link_up = false;
        impl->state.ports.push_back(port);
    }
    std::ranges::sort(impl->state.ports, {}, &route::EgressPort::id);
    // Subscribe first, so that changes between subscription and reading are received.
    PENSTOCK_TRY_STATUS(impl->sockets.open());
    PENSTOCK_TRY_STATUS(impl->read_everything());
    std::unique_ptr<NetlinkMirror> mirror(new NetlinkMirror(std::move(impl)));
    mirror->poll(Clock::time_point::max());
    return mirror;
}

NetlinkMirror::NetlinkMirror(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NetlinkMirror::~NetlinkMirror() = default;

int NetlinkMirror::fd() const noexcept {
    return impl_->sockets.fd();
}
const MirroredState& NetlinkMirror::state() const noexcept {
    return impl_->state;
}

bool NetlinkMirror::has_changes_waiting() const noexcept {
    return impl_->has_changes();
}
uint64_t NetlinkMirror::route_readings() const noexcept {
    return impl_->route_readings;
}

bool NetlinkMirror::Impl::has_changes() const noexcept {
    return routes_dirty || addresses_dirty || routes_changed || pending.any();
}

// Reads again what messages cannot describe, and rebuilds state.routes from the followed routes.
Status NetlinkMirror::Impl::catch_up() {
    if (routes_dirty) {
        PENSTOCK_TRY_STATUS(read_routes());
        receive_messages();
    }
    if (addresses_dirty) {
        PENSTOCK_TRY_STATUS(read_addresses());
    }
    if (routes_changed) {
        routes_changed = false;
        std::vector<route::Route> list = routes.list();
        if (list != state.routes) {
            state.routes = std::move(list);
            pending.forwarding = true;
        }
    }
    return {};
}

MirrorChange NetlinkMirror::poll(Clock::time_point now) {
    Impl& self = *impl_;
    self.receive_messages();
    if (!self.lost && !self.has_changes()) {
        return {};
    }
    if (now < self.round_allowed && !self.lost) {
        return {};
    }
    const auto started = Clock::now();
    Status done;
    if (std::exchange(self.lost, false)) {
        self.knows_routes = false;
        self.report(
            NoticeLevel::Warning,
            "netlink messages were lost (the socket buffer overflowed): reading all routes, neighbours "
            "and addresses again");
        done = self.read_everything();
        self.receive_messages();
    }
    if (done) {
        done = self.catch_up();
    }
    if (!done) {
        self.report(NoticeLevel::Warning, done.error().what + ": routes stay unchanged; retrying");
        self.routes_dirty = true;
        self.addresses_dirty = true;
    }
    const MirrorChange change = std::exchange(self.pending, {});
    if (change.any()) {
        self.state.neighbours = self.neighbours.list();
    }
    if (now != Clock::time_point::max()) {
        const auto table = kRoundGapPerRoute * static_cast<int64_t>(self.state.routes.size());
        self.round_allowed =
            now + std::max<Clock::duration>({kRoundGap, kRoundGapFactor * (Clock::now() - started), table});
    }
    return change;
}

void NetlinkMirror::resolve(NicPortId port, const IpAddr& address, Clock::time_point now) {
    if (impl_->neighbours.start_resolution({port, address}, now)) {
        impl_->ask_kernel(port, address);
    }
}

void NetlinkMirror::confirm(const route::Neighbour& neighbour, Clock::time_point now) {
    if (impl_->neighbours.start_confirmation(neighbour, now)) {
        impl_->ask_kernel(neighbour.port, neighbour.address);
    }
}

}  // namespace penstock::drivers
