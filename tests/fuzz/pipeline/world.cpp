#include "tests/fuzz/pipeline/world.hpp"

#include <algorithm>

namespace penstock::fuzz {
namespace {

using test::TestService;

std::vector<std::pair<IpAddr, L4Port>> on(size_t vip, L4Port port) {
    return {{kVips4[vip], port}, {kVips6[vip], port}};
}
std::vector<std::pair<IpAddr, L4Port>> on_two(L4Port port) {
    return {{kVips4[0], port}, {kVips6[0], port}, {kVips4[1], port}, {kVips6[1], port}};
}

const std::array<IpAddr, 4> kOwn{test::kUpAddress, test::kClusterAddress, test::kUpAddress6, test::kClusterAddress6};
const std::vector<Prefix> kRanges{*Prefix::parse("198.51.100.0/24"), *Prefix::parse("2001:db8:1::/64")};

}  // namespace

std::vector<TestService> services_of(uint8_t publication) {
    const bool is_exchanged = publication == 2, is_switched = publication == 3;
    const auto kept = is_switched ? lb::SourceMode::Translate : lb::SourceMode::Keep;
    const auto translated = is_switched ? lb::SourceMode::Keep : lb::SourceMode::Translate;
    std::vector<TestService> services;
    if (publication != 1) {
        services.push_back({.name = "web",
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
    services.push_back({.name = "kept", .frontends = on(0, 81), .backends = {13}, .backend_port = 9377, .source = kept});
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
    services.push_back(
        {.name = "s1ap", .protocol = Protocol::Sctp, .frontends = on(0, 36412), .backends = {13}, .backend_port = 36412, .source = kept});
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
        services.push_back({.name = "rejecting", .protocol = protocol, .frontends = on(2, 90)});
    }
    services.push_back({.name = "silent", .frontends = on(2, 91), .when_empty = lb::EmptyAction::Drop});
    services.push_back({.name = "ranged",
                        .frontends = on(0, kRangedPort),
                        .backends = {16},
                        .backend_port = kRangedBackendPort,
                        .source_ranges = kRanges});
    services.push_back({.name = "host", .protocol = Protocol::Udp, .frontends = on(0, 93), .backends = {1}, .backend_port = 9393});
    return services;
}

std::span<const L4Port> known_ports() {
    static constexpr L4Port kPorts[] = {80,   81,   53,   54,   3868, 36412, 90,    91,    92,    93,   30080, 30053, 30868,
                                        9376, 9377, 5353, 5354, 9392, 9393,  40000, 40001, 40002, 1024, 65535, 0};
    return kPorts;
}

bool is_vip(const IpAddr& address) {
    return std::ranges::find(kVips4, address) != kVips4.end() || std::ranges::find(kVips6, address) != kVips6.end();
}
bool is_served(const IpAddr& address, uint8_t publication) {
    return is_vip(address) && (publication != 1 || (address != kVips4[1] && address != kVips6[1]));
}
bool is_own(const IpAddr& address) {
    return std::ranges::find(kOwn, address) != kOwn.end();
}
bool is_endpoint(const IpAddr& address) {
    const uint8_t host = address.bytes()[15];
    return host >= kFirstEndpoint && host <= kLastEndpoint && address == test::backend_address(host, address.family());
}
bool is_in_ranges(const IpAddr& client) {
    return std::ranges::any_of(kRanges, [&](const Prefix& range) { return range.contains(client); });
}
bool is_nobodys(const IpAddr& address) {
    return address.is_loopback() || address.is_multicast() || address.is_unspecified() || address.is_reserved_v4();
}

}  // namespace penstock::fuzz
