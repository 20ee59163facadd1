#include "drivers/netlink_mirror.hpp"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "dataplane/base/limits.hpp"

namespace penstock::drivers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// At most so often is state() built anew; a first change after silence is taken up at once. A round that took long (a full routing table)
// waits four times its own length, so that this never is more than a fifth of the thread.
constexpr milliseconds kRoundGap{10};
constexpr int kRoundGapFactor = 4;

// The kernel asks three times in three seconds by itself; asking it again sooner changes nothing, and after a failure it would only
// multiply ARP on the wire.
constexpr seconds kAskAgain{1};
constexpr seconds kAskAgainFailed{3};

// Notifications the kernel may have waiting for us: about 20,000 neighbour messages.
constexpr int kReceiveBuffer = 8 << 20;
// One recv() of a notification; the kernel fills at most 32 KB at a time.
constexpr size_t kMessageBuffer = 32'768;
// Messages heard in one poll(): a storm must not keep the twins' frames waiting.
constexpr int kDatagramsPerPoll = 1'024;

// A dump that a change ran through is repeated; a table that changes all the time is read as it comes in the end, because each change has
// announced itself to the other socket and leads to the next round.
constexpr int kDumpAttempts = 3;

struct NeighbourKey {
    NicPortId port;
    IpAddr address;
    bool operator==(const NeighbourKey&) const = default;
};
struct NeighbourKeyHash {
    size_t operator()(const NeighbourKey& key) const noexcept { return std::hash<IpAddr>{}(key.address) ^ key.port.value; }
};

std::optional<IpAddr> read_address(int family, const void* bytes, size_t length) {
    if (family == AF_INET && length == 4) {
        return IpAddr::v4(load<Be32>(bytes));
    }
    if (family == AF_INET6 && length == 16) {
        return IpAddr::v6(load<std::array<uint8_t, 16>>(bytes));
    }
    return std::nullopt;
}

std::optional<IpAddr> read_address(int family, const nlattr* attribute) {
    return attribute == nullptr ? std::nullopt : read_address(family, nla_data(attribute), static_cast<size_t>(nla_len(attribute)));
}

// NUD_DELAY and NUD_PROBE are a stale entry that is being re-confirmed; its MAC serves meanwhile.
std::optional<route::NeighbourState> read_state(uint16_t nud) {
    if ((nud & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP)) != 0) {
        return route::NeighbourState::Reachable;
    }
    if ((nud & (NUD_STALE | NUD_DELAY | NUD_PROBE)) != 0) {
        return route::NeighbourState::Stale;
    }
    if ((nud & NUD_INCOMPLETE) != 0) {
        return route::NeighbourState::Resolving;
    }
    if ((nud & NUD_FAILED) != 0) {
        return route::NeighbourState::Failed;
    }
    return std::nullopt;  // NUD_NONE: made, never asked
}

}  // namespace

struct NetlinkMirror::Impl {
    NoticeSink sink;
    nl_sock* hearing = nullptr;  // notifications
    nl_sock* asking = nullptr;   // dumps
    nl_sock* nudging = nullptr;  // requests to resolve, whose refusals nobody waits for
    std::vector<Twin> twins;
    std::unordered_map<int, NicPortId> port_of;  // by interface index
    std::unordered_map<uint8_t, int> ifindex_of;

    std::unordered_map<NeighbourKey, route::Neighbour, NeighbourKeyHash> neighbours;
    std::deque<uint32_t> free_ids;  // taken from the front, returned to the back: an id rests for as long as possible
    bool told_full = false;

    MirroredState state;
    MirrorChange pending;
    bool routes_dirty = false;  // routes or addresses
    Clock::time_point round_allowed{};
    std::unordered_map<NeighbourKey, Clock::time_point, NeighbourKeyHash> asked;

    ~Impl() {
        nl_socket_free(hearing);
        nl_socket_free(asking);
        nl_socket_free(nudging);
    }

    Status connect();
    Status read_everything();
    // Sends a dump request and hands every message of the answer to `take`.
    template <typename Header, typename Take>
    Status dump(int type, const Header& header, Take take);
    Status read_routes_and_addresses(bool& changed);
    Status read_neighbours();
    Status read_links();

    void take_message(const nlmsghdr* message);
    void take_link(const nlmsghdr* message);
    // The key of the entry that the message is about; empty where it is none of ours.
    std::optional<NeighbourKey> take_neighbour(const nlmsghdr* message);
    std::optional<route::Route> read_route(const nlmsghdr* message) const;
    std::optional<route::LocalAddress> read_local_address(const nlmsghdr* message) const;
    void forget_neighbour(const NeighbourKey& key);
    bool hear();
    void ask_kernel(NicPortId port, const IpAddr& address);
    void tell(NoticeLevel level, const std::string& text) const {
        if (sink) {
            sink(level, text);
        }
    }
};

Status NetlinkMirror::Impl::connect() {
    for (nl_sock** socket : {&hearing, &asking, &nudging}) {
        *socket = nl_socket_alloc();
        if (const int result = nl_connect(*socket, NETLINK_ROUTE); result < 0) {
            return fail(Errc::Unavailable, std::string("netlink: ") + nl_geterror(result));
        }
        // Root may exceed net.core.rmem_max; others get what that allows, and more resyncs.
        if (setsockopt(nl_socket_get_fd(*socket), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof(kReceiveBuffer)) != 0) {
            nl_socket_set_buffer_size(*socket, kReceiveBuffer, 0);
        }
    }
    // Filters in dump requests are obeyed, not ignored (Linux 4.20; older kernels send more and are filtered here).
    const int on = 1;
    setsockopt(nl_socket_get_fd(asking), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
    nl_socket_disable_seq_check(hearing);
    nl_socket_set_nonblocking(hearing);
    if (const int result = nl_socket_add_memberships(hearing, RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
                                                     RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, 0);
        result < 0) {
        return fail(Errc::Unavailable, std::string("netlink groups: ") + nl_geterror(result));
    }
    return {};
}

template <typename Header, typename Take>
Status NetlinkMirror::Impl::dump(int type, const Header& header, Take take) {
    int result = 0;
    for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
        auto copy = header;
        result = nl_send_simple(asking, type, NLM_F_DUMP, &copy, sizeof(copy));
        if (result < 0) {
            break;
        }
        nl_cb* const callbacks = nl_cb_alloc(NL_CB_DEFAULT);
        nl_cb_set(
            callbacks, NL_CB_VALID, NL_CB_CUSTOM,
            [](nl_msg* message, void* argument) {
                (*static_cast<Take*>(argument))(nlmsg_hdr(message));
                return static_cast<int>(NL_OK);
            },
            &take);
        result = nl_recvmsgs(asking, callbacks);
        nl_cb_put(callbacks);
        if (result != -NLE_DUMP_INTR) {
            break;
        }
    }
    // A family's main table is made with its first route; until then there is nothing to filter by.
    if (result < 0 && result != -NLE_DUMP_INTR && result != -NLE_OBJ_NOTFOUND) {
        return fail(Errc::Unavailable, std::string("netlink dump: ") + nl_geterror(result));
    }
    return {};
}

Status NetlinkMirror::Impl::read_routes_and_addresses(bool& changed) {
    std::vector<route::Route> routes;
    std::vector<route::LocalAddress> addresses;
    for (const int family : {AF_INET, AF_INET6}) {
        rtmsg route_header{};
        route_header.rtm_family = static_cast<unsigned char>(family);
        route_header.rtm_table = RT_TABLE_MAIN;
        auto done = dump(RTM_GETROUTE, route_header, [&](const nlmsghdr* message) {
            if (auto route = read_route(message)) {
                routes.push_back(*route);
            }
        });
        ifaddrmsg address_header{};
        address_header.ifa_family = static_cast<unsigned char>(family);
        if (done) {
            done = dump(RTM_GETADDR, address_header, [&](const nlmsghdr* message) {
                if (auto address = read_local_address(message)) {
                    addresses.push_back(*address);
                }
            });
        }
        if (!done) {
            return done;
        }
    }
    // An interrupted dump may say a thing twice.
    const auto by_route = [](const route::Route& r) { return std::tuple(r.destination, r.metric, r.egress, r.gateway); };
    std::ranges::sort(routes, {}, by_route);
    routes.erase(std::ranges::unique(routes).begin(), routes.end());
    const auto by_address = [](const route::LocalAddress& a) { return std::tuple(a.port, a.address, a.prefix_length); };
    std::ranges::sort(addresses, {}, by_address);
    addresses.erase(std::ranges::unique(addresses).begin(), addresses.end());
    changed = routes != state.routes || addresses != state.addresses;
    state.routes = std::move(routes);
    state.addresses = std::move(addresses);
    return {};
}

Status NetlinkMirror::Impl::read_neighbours() {
    ndmsg header{};
    header.ndm_family = AF_UNSPEC;
    std::unordered_set<NeighbourKey, NeighbourKeyHash> seen;
    auto done = dump(RTM_GETNEIGH, header, [&](const nlmsghdr* message) {
        if (const auto key = take_neighbour(message)) {
            seen.insert(*key);
        }
    });
    if (!done) {
        return done;
    }
    // What is gone is not mentioned.
    std::vector<NeighbourKey> gone;
    for (const auto& [key, neighbour] : neighbours) {
        if (!seen.contains(key)) {
            gone.push_back(key);
        }
    }
    for (const NeighbourKey& key : gone) {
        forget_neighbour(key);
    }
    return {};
}

Status NetlinkMirror::Impl::read_links() {
    ifinfomsg header{};
    header.ifi_family = AF_UNSPEC;
    return dump(RTM_GETLINK, header, [&](const nlmsghdr* message) { take_link(message); });
}

Status NetlinkMirror::Impl::read_everything() {
    bool changed = false;
    auto done = read_links();
    if (done) {
        done = read_neighbours();
    }
    if (done) {
        done = read_routes_and_addresses(changed);
    }
    pending.forwarding = true;
    return done;
}

// Only unicast routes of the main table through a twin. Flags that say "not now" count hop by hop.
std::optional<route::Route> NetlinkMirror::Impl::read_route(const nlmsghdr* message) const {
    const auto* facts = static_cast<const rtmsg*>(nlmsg_data(message));
    std::array<nlattr*, RTA_MAX + 1> attributes{};
    if (message->nlmsg_type != RTM_NEWROUTE || facts->rtm_type != RTN_UNICAST || facts->rtm_tos != 0 ||
        (facts->rtm_flags & RTM_F_CLONED) != 0 ||
        nlmsg_parse(const_cast<nlmsghdr*>(message), sizeof(rtmsg), attributes.data(), RTA_MAX, nullptr) != 0) {
        return std::nullopt;
    }
    const uint32_t table = attributes[RTA_TABLE] != nullptr ? nla_get_u32(attributes[RTA_TABLE]) : facts->rtm_table;
    if (table != RT_TABLE_MAIN) {
        return std::nullopt;
    }
    route::Route route;
    const IpAddr any = facts->rtm_family == AF_INET ? IpAddr::v4(0, 0, 0, 0) : IpAddr();
    auto prefix = Prefix::make(read_address(facts->rtm_family, attributes[RTA_DST]).value_or(any), facts->rtm_dst_len);
    if (!prefix) {
        return std::nullopt;
    }
    route.destination = *prefix;
    route.metric = attributes[RTA_PRIORITY] != nullptr ? nla_get_u32(attributes[RTA_PRIORITY]) : 0;

    // The gateway of a hop: of the route's own family, or an IPv6 address for an IPv4 route (RFC 5549's RTA_VIA).
    const auto gateway_of = [&](const std::array<nlattr*, RTA_MAX + 1>& hop) -> std::optional<IpAddr> {
        if (hop[RTA_GATEWAY] != nullptr) {
            return read_address(facts->rtm_family, hop[RTA_GATEWAY]);
        }
        if (hop[RTA_VIA] != nullptr && nla_len(hop[RTA_VIA]) > static_cast<int>(sizeof(rtvia))) {
            const auto* via = static_cast<const rtvia*>(nla_data(hop[RTA_VIA]));
            return read_address(via->rtvia_family, via->rtvia_addr, static_cast<size_t>(nla_len(hop[RTA_VIA])) - sizeof(rtvia));
        }
        return std::nullopt;
    };

    if (attributes[RTA_MULTIPATH] == nullptr) {
        const auto port = attributes[RTA_OIF] == nullptr ? port_of.end() : port_of.find(static_cast<int>(nla_get_u32(attributes[RTA_OIF])));
        if (port == port_of.end() || (facts->rtm_flags & RTNH_F_DEAD) != 0) {
            return std::nullopt;
        }
        route.egress = port->second;
        route.gateway = gateway_of(attributes);
        return route;
    }
    const auto* hop = static_cast<const rtnexthop*>(nla_data(attributes[RTA_MULTIPATH]));
    for (int left = nla_len(attributes[RTA_MULTIPATH]); RTNH_OK(hop, left);
         left -= static_cast<int>(NLMSG_ALIGN(hop->rtnh_len)), hop = RTNH_NEXT(hop)) {
        const auto port = port_of.find(hop->rtnh_ifindex);
        if (port == port_of.end() || (hop->rtnh_flags & RTNH_F_DEAD) != 0) {
            continue;
        }
        std::array<nlattr*, RTA_MAX + 1> hop_attributes{};
        auto* const first = reinterpret_cast<nlattr*>(RTNH_DATA(const_cast<rtnexthop*>(hop)));
        if (nla_parse(hop_attributes.data(), RTA_MAX, first, hop->rtnh_len - static_cast<int>(RTNH_LENGTH(0)), nullptr) != 0) {
            continue;
        }
        route.egress = port->second;
        route.gateway = gateway_of(hop_attributes);
        return route;
    }
    return std::nullopt;
}

std::optional<route::LocalAddress> NetlinkMirror::Impl::read_local_address(const nlmsghdr* message) const {
    const auto* facts = static_cast<const ifaddrmsg*>(nlmsg_data(message));
    std::array<nlattr*, IFA_MAX + 1> attributes{};
    const auto port = port_of.find(static_cast<int>(facts->ifa_index));
    if (message->nlmsg_type != RTM_NEWADDR || port == port_of.end() ||
        nlmsg_parse(const_cast<nlmsghdr*>(message), sizeof(ifaddrmsg), attributes.data(), IFA_MAX, nullptr) != 0) {
        return std::nullopt;
    }
    // On a point-to-point address IFA_ADDRESS is the peer's; IFA_LOCAL is ours wherever it is given.
    const nlattr* own = attributes[IFA_LOCAL] != nullptr ? attributes[IFA_LOCAL] : attributes[IFA_ADDRESS];
    const auto address = read_address(facts->ifa_family, own);
    if (!address) {
        return std::nullopt;
    }
    return route::LocalAddress{port->second, *address, facts->ifa_prefixlen};
}

void NetlinkMirror::Impl::take_link(const nlmsghdr* message) {
    const auto* facts = static_cast<const ifinfomsg*>(nlmsg_data(message));
    const auto port = port_of.find(facts->ifi_index);
    std::array<nlattr*, IFLA_MAX + 1> attributes{};
    if (port == port_of.end() || facts->ifi_family != AF_UNSPEC ||
        nlmsg_parse(const_cast<nlmsghdr*>(message), sizeof(ifinfomsg), attributes.data(), IFLA_MAX, nullptr) != 0) {
        return;
    }
    const auto entry = std::ranges::find(state.ports, port->second, &route::EgressPort::id);
    route::EgressPort now = *entry;
    now.link_up = message->nlmsg_type == RTM_NEWLINK && (facts->ifi_flags & IFF_UP) != 0 && (facts->ifi_flags & IFF_RUNNING) != 0;
    if (attributes[IFLA_MTU] != nullptr) {
        now.mtu = static_cast<uint16_t>(std::min<uint32_t>(nla_get_u32(attributes[IFLA_MTU]), UINT16_MAX));
    }
    if (attributes[IFLA_ADDRESS] != nullptr && nla_len(attributes[IFLA_ADDRESS]) == static_cast<int>(sizeof(MacAddr))) {
        std::memcpy(now.mac.bytes.data(), nla_data(attributes[IFLA_ADDRESS]), sizeof(MacAddr));
    }
    if (now != *entry) {
        *entry = now;
        pending.forwarding = true;
        routes_dirty = true;  // a link that goes down takes IPv4 routes with it unannounced
    }
}

void NetlinkMirror::Impl::forget_neighbour(const NeighbourKey& key) {
    const auto found = neighbours.find(key);
    if (found != neighbours.end()) {
        free_ids.push_back(found->second.id.value);
        neighbours.erase(found);
        pending.forwarding = true;
    }
}

std::optional<NeighbourKey> NetlinkMirror::Impl::take_neighbour(const nlmsghdr* message) {
    const auto* facts = static_cast<const ndmsg*>(nlmsg_data(message));
    const auto port = port_of.find(facts->ndm_ifindex);
    std::array<nlattr*, NDA_MAX + 1> attributes{};
    if (port == port_of.end() || (facts->ndm_flags & NTF_PROXY) != 0 ||
        nlmsg_parse(const_cast<nlmsghdr*>(message), sizeof(ndmsg), attributes.data(), NDA_MAX, nullptr) != 0) {
        return std::nullopt;
    }
    const auto address = read_address(facts->ndm_family, attributes[NDA_DST]);
    // The kernel keeps NOARP entries for the multicast groups that it sends to; no unicast packet goes there.
    if (!address || address->is_multicast()) {
        return std::nullopt;
    }
    const NeighbourKey key{port->second, *address};
    const auto nud = read_state(facts->ndm_state);
    if (message->nlmsg_type == RTM_DELNEIGH || !nud) {
        forget_neighbour(key);
        return key;
    }
    route::Neighbour now;
    now.port = port->second;
    now.address = *address;
    now.state = *nud;
    if (attributes[NDA_LLADDR] != nullptr && nla_len(attributes[NDA_LLADDR]) == static_cast<int>(sizeof(MacAddr))) {
        std::memcpy(now.mac.bytes.data(), nla_data(attributes[NDA_LLADDR]), sizeof(MacAddr));
    } else if (now.is_usable()) {
        return key;  // a broadcast entry, or a device without link addresses: nothing to send to
    }
    const auto known = neighbours.find(key);
    if (known == neighbours.end()) {
        if (free_ids.empty()) {
            if (!told_full) {
                tell(NoticeLevel::Warning, "more than " + std::to_string(limits::kNeighboursMax) +
                                               " neighbours on the twins: " + address->to_string() + " and others cannot be reached");
                told_full = true;
            }
            return key;
        }
        now.id = NeighbourId{free_ids.front()};
        free_ids.pop_front();
        neighbours.emplace(key, now);
        pending.forwarding = true;
        return key;
    }
    now.id = known->second.id;
    if (now == known->second) {
        return key;
    }
    const bool forwards_alike = now.is_usable() == known->second.is_usable() && (!now.is_usable() || now.mac == known->second.mac);
    (forwards_alike ? pending.states : pending.forwarding) = true;
    known->second = now;
    return key;
}

void NetlinkMirror::Impl::take_message(const nlmsghdr* message) {
    switch (message->nlmsg_type) {
        case RTM_NEWLINK:
        case RTM_DELLINK:
            take_link(message);
            break;
        case RTM_NEWNEIGH:
        case RTM_DELNEIGH:
            take_neighbour(message);
            break;
        case RTM_NEWADDR:
        case RTM_DELADDR: {
            const auto* facts = static_cast<const ifaddrmsg*>(nlmsg_data(message));
            routes_dirty = routes_dirty || port_of.contains(static_cast<int>(facts->ifa_index));
            break;
        }
        case RTM_NEWROUTE:
        case RTM_DELROUTE: {
            const auto* facts = static_cast<const rtmsg*>(nlmsg_data(message));
            // RT_TABLE_COMPAT stands for numbers above 255, which the main table's is not.
            routes_dirty = routes_dirty || facts->rtm_table == RT_TABLE_MAIN;
            break;
        }
        default:
            break;
    }
}

// Hears what is there; false where messages were lost.
bool NetlinkMirror::Impl::hear() {
    alignas(nlmsghdr) std::array<unsigned char, kMessageBuffer> buffer;
    const int fd = nl_socket_get_fd(hearing);
    for (int i = 0; i < kDatagramsPerPoll; ++i) {
        const ssize_t length = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_TRUNC);
        if (length < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno != ENOBUFS;
        }
        if (static_cast<size_t>(length) > buffer.size()) {
            return false;  // cut: as good as lost
        }
        int left = static_cast<int>(length);
        for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); nlmsg_ok(message, left) != 0;
             message = nlmsg_next(message, &left)) {
            take_message(message);
        }
    }
    return true;
}

void NetlinkMirror::Impl::ask_kernel(NicPortId port, const IpAddr& address) {
    const auto ifindex = ifindex_of.find(port.value);
    if (ifindex == ifindex_of.end()) {
        return;
    }
    // `ip neigh replace ADDRESS dev TWIN nud none use`: the entry is made where it is missing, and used in the kernel's sense.
    nl_msg* const message = nlmsg_alloc_simple(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
    ndmsg facts{};
    facts.ndm_family = address.is_v4() ? AF_INET : AF_INET6;
    facts.ndm_ifindex = ifindex->second;
    facts.ndm_state = NUD_NONE;
    facts.ndm_flags = NTF_USE;
    nlmsg_append(message, &facts, sizeof(facts), NLMSG_ALIGNTO);
    const auto& bytes = address.bytes();
    const size_t skipped = address.is_v4() ? 12 : 0;
    nla_put(message, NDA_DST, static_cast<int>(bytes.size() - skipped), bytes.data() + skipped);
    // No acknowledgement is asked for, and a refusal (the kernel's table is full) shows as the neighbour staying unknown.
    nl_send_auto(nudging, message);
    nlmsg_free(message);
    std::array<unsigned char, 4096> refusal;
    while (recv(nl_socket_get_fd(nudging), refusal.data(), refusal.size(), MSG_DONTWAIT) > 0) {
    }
}

Result<std::unique_ptr<NetlinkMirror>> NetlinkMirror::open(const std::vector<Twin>& twins, const NoticeSink& sink) {
    auto impl = std::make_unique<Impl>();
    impl->sink = sink;
    impl->twins = twins;
    for (uint32_t id = 0; id < limits::kNeighboursMax; ++id) {
        impl->free_ids.push_back(id);
    }
    for (const Twin& twin : twins) {
        const unsigned index = if_nametoindex(twin.name.c_str());
        if (index == 0) {
            return fail(Errc::NotFound, "twin " + twin.name + ": no such interface");
        }
        impl->port_of[static_cast<int>(index)] = twin.port;
        impl->ifindex_of[twin.port.value] = static_cast<int>(index);
        route::EgressPort port;
        port.id = twin.port;
        port.link_up = false;
        impl->state.ports.push_back(port);
    }
    std::ranges::sort(impl->state.ports, {}, &route::EgressPort::id);
    // Subscribe first: what changes between the two is then heard of.
    auto done = impl->connect();
    if (done) {
        done = impl->read_everything();
    }
    if (!done) {
        return std::unexpected(done.error());
    }
    std::unique_ptr<NetlinkMirror> mirror(new NetlinkMirror(std::move(impl)));
    mirror->poll(Clock::time_point::max());
    return mirror;
}

NetlinkMirror::NetlinkMirror(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NetlinkMirror::~NetlinkMirror() = default;

int NetlinkMirror::fd() const noexcept {
    return nl_socket_get_fd(impl_->hearing);
}
const MirroredState& NetlinkMirror::state() const noexcept {
    return impl_->state;
}

MirrorChange NetlinkMirror::poll(Clock::time_point now) {
    Impl& self = *impl_;
    bool lost = !self.hear();
    if (!lost && !self.routes_dirty && !self.pending.any()) {
        return {};
    }
    if (now < self.round_allowed && !lost) {
        return {};
    }
    const auto started = Clock::now();
    Status done;
    if (lost) {
        self.tell(NoticeLevel::Warning, "netlink messages were lost (more changes at once than fit the socket): reading everything anew");
        done = self.read_everything();
        self.routes_dirty = false;
    } else if (self.routes_dirty) {
        bool changed = false;
        done = self.read_routes_and_addresses(changed);
        self.routes_dirty = false;
        self.pending.forwarding = self.pending.forwarding || changed;
    }
    if (!done) {
        self.tell(NoticeLevel::Warning, done.error().what + ": routes are as before; trying again");
        self.routes_dirty = true;
    }
    const MirrorChange change = std::exchange(self.pending, {});
    if (change.any()) {
        self.state.neighbours.clear();
        for (const auto& [key, neighbour] : self.neighbours) {
            self.state.neighbours.push_back(neighbour);
        }
        std::ranges::sort(self.state.neighbours, {}, &route::Neighbour::id);
    }
    if (now != Clock::time_point::max()) {
        self.round_allowed = now + std::max<Clock::duration>(kRoundGap, kRoundGapFactor * (Clock::now() - started));
    }
    return change;
}

void NetlinkMirror::resolve(NicPortId port, const IpAddr& address, Clock::time_point now) {
    Impl& self = *impl_;
    const NeighbourKey key{port, address};
    const auto known = self.neighbours.find(key);
    if (known != self.neighbours.end() && known->second.is_usable()) {
        return;
    }
    const bool failed_before = known != self.neighbours.end() && known->second.state == route::NeighbourState::Failed;
    const auto pause = failed_before ? kAskAgainFailed : kAskAgain;
    const auto asked = self.asked.find(key);
    if (asked != self.asked.end() && now < asked->second + pause) {
        return;
    }
    if (self.asked.size() >= limits::kNeighboursMax) {
        std::erase_if(self.asked, [&](const auto& entry) { return entry.second + kAskAgainFailed <= now; });
        if (self.asked.size() >= limits::kNeighboursMax) {
            return;  // somebody scans an on-link prefix; the kernel's own table is full by now too
        }
    }
    self.asked[key] = now;
    self.ask_kernel(port, address);
}

void NetlinkMirror::confirm(const route::Neighbour& neighbour, Clock::time_point now) {
    Impl& self = *impl_;
    if (neighbour.state != route::NeighbourState::Stale) {
        return;
    }
    const NeighbourKey key{neighbour.port, neighbour.address};
    const auto asked = self.asked.find(key);
    if (asked != self.asked.end() && now < asked->second + kAskAgain) {
        return;
    }
    self.asked[key] = now;
    self.ask_kernel(neighbour.port, neighbour.address);
}

}  // namespace penstock::drivers
