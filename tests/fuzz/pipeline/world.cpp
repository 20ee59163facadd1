// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pipeline/world.hpp"

#include <algorithm>
#include <memory>

namespace penstock::fuzz {
namespace {

using test::TestService;

std::vector<std::pair<IpAddr, L4Port>> on(size_t vip, L4Port port) {
    return {{kVips4[vip], port}, {kVips6[vip], port}};
}
std::vector<std::pair<IpAddr, L4Port>> on_two(L4Port port) {
    return {{kVips4[0], port}, {kVips6[0], port}, {kVips4[1], port}, {kVips6[1], port}};
}

const std::array<IpAddr, 4> kOwn{test::kUpAddress, test::kClusterAddress, test::kUpAddress6,
                                 test::kClusterAddress6};
const std::vector<Prefix> kRanges{*Prefix::parse("198.51.100.0/24"), *Prefix::parse("2001:db8:1::/64")};

constexpr std::array<uint16_t, kMtus> kMtuOf{1500, 1280, 576, 9000};

const route::PrefixSet& blocklist() {
    static const route::PrefixSet list({*Prefix::make(kBlocked4, 32), *Prefix::make(kBlocked6, 128)});
    return list;
}

// Creates the parts of snapshots, each once, on first use.
class Parts {
 public:
    Parts() {
        gateway_.publish(services_of(0));
        at_start_ = gateway_.snapshot();
        // Tables record their former contents, so each of these belongs to a gateway that has had all the
        // others.
        for (uint8_t publication = 1; publication < 2 * kPublications; ++publication) {
            gateway_.publish(services_of(publication % kPublications));
            services_[publication % kPublications] = gateway_.snapshot().services;
        }
        gateway_.set_blocked_sources(blocklist());
        blocked_sources_ = gateway_.snapshot().blocked_sources;
        gateway_.set_link_vips(kLinkVips);
        link_vips_ = gateway_.snapshot().link_vips;
    }
    [[nodiscard]] const config::Snapshot& at_start() const { return at_start_; }

    [[nodiscard]] config::Snapshot snapshot_of(const Rules& rules) {
        config::Snapshot snapshot = at_start_;
        snapshot.services = services_[rules.publication];
        snapshot.routes = routes_of(rules);
        snapshot.blocked_sources = rules.has_blocklist ? blocked_sources_ : nullptr;
        snapshot.link_vips = rules.has_link_vips ? link_vips_ : nullptr;
        snapshot.rejects_closed_vip_ports = rules.rejects_closed_vip_ports;
        snapshot.packets.aborts_sctp = rules.aborts_sctp;
        snapshot.packets.passes_ip_options = rules.passes_ip_options;
        snapshot.packets.picks_up_midstream = rules.picks_up_midstream;
        snapshot.packets.lowers_mss = rules.clamps_mss;
        snapshot.packets.mss_max[test::kCluster.value] = rules.clamps_mss ? kMssMax : 0;
        return snapshot;
    }

 private:
    std::shared_ptr<const route::RouteTable> routes_of(const Rules& rules) {
        auto& routes =
            routes_[(size_t{rules.mtu_choice} * 2 + rules.has_present_vips) * 2 + rules.has_unresolved];
        if (!routes) {
            gateway_.set_mtu(rules.mtu());
            gateway_.set_present_vips(rules.has_present_vips ? kPresentVips : std::vector<IpAddr>());
            gateway_.set_unresolved(rules.has_unresolved ? std::vector<uint8_t>{11, 13}
                                                         : std::vector<uint8_t>());
            routes = gateway_.snapshot().routes;
        }
        return routes;
    }

    test::VirtualGateway gateway_{{.secrets_from = 0}};
    config::Snapshot at_start_;
    std::array<std::shared_ptr<const lb::ServiceTable>, kPublications> services_;
    std::array<std::shared_ptr<const route::RouteTable>, kMtus * 4> routes_;
    std::shared_ptr<const route::PrefixSet> blocked_sources_;
    std::shared_ptr<const route::LinkVips> link_vips_;
};

Parts& parts() {
    static Parts parts;
    return parts;
}

}  // namespace

uint16_t Rules::mtu() const {
    return kMtuOf[mtu_choice];
}
const config::Snapshot& snapshot_at_start() {
    return parts().at_start();
}
config::Snapshot snapshot_of(const Rules& rules) {
    return parts().snapshot_of(rules);
}

std::vector<TestService> services_of(uint8_t publication) {
    const bool is_exchanged = publication == 2, is_switched = publication == 3;
    const auto kept = is_switched ? lb::SourceMode::Translate : lb::SourceMode::Keep;
    const auto translated = is_switched ? lb::SourceMode::Keep : lb::SourceMode::Translate;
    std::vector<TestService> services;
    if (publication != 1) {
        services.push_back(
            {.name = "web",
             .frontends = on_two(80),
             .node_ports = {30080},
             .backends = is_exchanged ? std::vector<uint8_t>{13, 16} : std::vector<uint8_t>{11, 12},
             .source = translated});
        services.push_back({.name = "dns",
                            .protocol = Protocol::Udp,
                            .frontends = on_two(53),
                            .node_ports = {30053},
                            .backends = {is_exchanged ? uint8_t{16} : uint8_t{14}},
                            .backend_port = 5353});
    }
    services.push_back(
        {.name = "kept", .frontends = on(0, 81), .backends = {13}, .backend_port = 9377, .source = kept});
    services.push_back({.name = "pinned",
                        .protocol = Protocol::Udp,
                        .frontends = on(0, 54),
                        .backends = {14, 15},
                        .backend_port = 5354,
                        .source = kept,
                        .affinity_timeout_s = 30});
    services.push_back({.name = "diameter",
                        .protocol = Protocol::Sctp,
                        .frontends = on(0, 3868),
                        .node_ports = {30868},
                        .backends = {11},
                        .backend_port = 3868});
    services.push_back({.name = "s1ap",
                        .protocol = Protocol::Sctp,
                        .frontends = on(0, 36412),
                        .backends = {13},
                        .backend_port = 36412,
                        .source = kept});
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
        services.push_back({.name = "rejecting", .protocol = protocol, .frontends = on(2, 90)});
    }
    services.push_back({.name = "silent", .frontends = on(2, 91), .when_empty = lb::EmptyAction::Drop});
    services.push_back({.name = "ranged",
                        .frontends = on(0, kRangedPort),
                        .backends = {16},
                        .backend_port = kRangedBackendPort,
                        .source_ranges = kRanges});
    services.push_back({.name = "host",
                        .protocol = Protocol::Udp,
                        .frontends = on(0, 93),
                        .backends = {1},
                        .backend_port = 9393});
    services.push_back(
        {.name = "hashed",
         .frontends = on(0, kHashedPort),
         .backends = is_exchanged ? std::vector<uint8_t>{11, 16} : std::vector<uint8_t>{11, 15},
         .backend_port = kHashedBackendPort,
         .source = kept,
         .scheduler = lb::SchedulerKind::Maglev});
    constexpr std::array kProtocols{Protocol::Tcp, Protocol::Udp, Protocol::Sctp};
    for (size_t n = 0; n < kMixedPorts.size(); ++n) {
        services.push_back({.name = "mixed",
                            .protocol = kProtocols[n],
                            .frontends = on(0, kMixedPorts[n]),
                            .backends = {12},
                            .backend_port = kMixedBackendPorts[n],
                            .source = n == 0 ? kept : translated,
                            .scheduler = n == 0 ? lb::SchedulerKind::Maglev : lb::SchedulerKind::RoundRobin,
                            .endpoints_of = n == 1 ? IpFamily::V4 : IpFamily::V6});
    }
    return services;
}

std::span<const L4Port> known_ports() {
    static constexpr L4Port kPorts[] = {80,   81,    53,    54,    3868, 36412, 90,   91,   92,
                                        93,   30080, 30053, 30868, 9376, 9377,  5353, 5354, 9392,
                                        9393, 40000, 40001, 40002, 1024, 65535, 0,    94,   95,
                                        96,   9394,  9395,  9396,  97,   9397};
    return kPorts;
}

bool is_vip(const IpAddr& address) {
    return std::ranges::find(kVips4, address) != kVips4.end() ||
           std::ranges::find(kVips6, address) != kVips6.end();
}
bool is_served(const IpAddr& address, uint8_t publication) {
    return is_vip(address) && (publication != 1 || (address != kVips4[1] && address != kVips6[1]));
}
bool may_be_picked_up(uint8_t publication, const IpAddr& vip, L4Port port) {
    const bool is_hashed = port == kHashedPort && (vip == kVips4[0] || vip == kVips6[0]);
    const bool is_of_endpoints_family = port == kMixedPorts[0] && vip == kVips6[0];
    return publication != 3 && (is_hashed || is_of_endpoints_family);
}
bool is_own(const IpAddr& address) {
    return std::ranges::find(kOwn, address) != kOwn.end();
}
bool is_endpoint(const IpAddr& address) {
    const uint8_t host = address.bytes()[15];
    return host >= kFirstEndpoint && host <= kLastEndpoint &&
           address == test::backend_address(host, address.family());
}
bool is_client(const IpAddr& address) {
    constexpr ptrdiff_t kHonest = 4;
    return std::find(kSources4.begin(), kSources4.begin() + kHonest, address) !=
               kSources4.begin() + kHonest ||
           std::find(kSources6.begin(), kSources6.begin() + kHonest, address) != kSources6.begin() + kHonest;
}
bool is_in_ranges(const IpAddr& client) {
    return std::ranges::any_of(kRanges, [&](const Prefix& range) { return range.contains(client); });
}
bool is_nobodys(const IpAddr& address) {
    return address.is_loopback() || address.is_multicast() || address.is_unspecified() ||
           address.is_reserved_v4();
}

}  // namespace penstock::fuzz
