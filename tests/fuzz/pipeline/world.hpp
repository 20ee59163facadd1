// SPDX-License-Identifier: Apache-2.0
// The small world of the pipeline fuzzer's programs: a few Services of each kind, the addresses of all hosts,
// and the ports at which they may appear. It is small so that random choices coincide.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tests/support/virtual_gateway.hpp"

namespace penstock::fuzz {

inline constexpr uint32_t kWorkersMost = 3;
// Limit of answers of each kind per worker. It is low, so that a program reaches it.
inline constexpr uint32_t kAnswersPerSecond = 4, kAnswersBurst = 4;

// Endpoints are hosts 11 to 16 on the cluster's link; 1 is the gateway host itself.
inline constexpr uint8_t kFirstEndpoint = 11, kLastEndpoint = 16;
inline constexpr uint8_t kClusterRouter = 250;

// Only clients in these ranges may use the Service on kRangedPort.
inline constexpr L4Port kRangedPort = 92, kRangedBackendPort = 9392;

// The Service that every gateway schedules alike. Its connections may be picked up mid-stream.
inline constexpr L4Port kHashedPort = 97, kHashedBackendPort = 9397;

// Services with endpoints of one family, for clients of either family: the ports of their frontends, and of
// the endpoints.
inline constexpr std::array<L4Port, 3> kMixedPorts{94, 95, 96}, kMixedBackendPorts{9394, 9395, 9396};

inline const std::array<IpAddr, 3> kVips4{IpAddr::v4(80, 11, 12, 10), IpAddr::v4(80, 11, 12, 11),
                                          IpAddr::v4(80, 11, 12, 12)};
inline const std::array<IpAddr, 3> kVips6{
    *IpAddr::parse("2001:db8:80::10"), *IpAddr::parse("2001:db8:80::11"), *IpAddr::parse("2001:db8:80::12")};
// The second VIP of each family may be on the uplink's twin (VIP presence).
inline const std::vector<IpAddr> kPresentVips{kVips4[1], kVips6[1]};
// Workers may answer ARP and neighbour discovery for the third one on the uplink.
inline const std::vector<IpAddr> kLinkVips{kVips4[2], kVips6[2]};

// Source addresses: near and remote clients, legitimate and impossible ones. The last address of each
// family's first four is on the blocklist, if there is one.
inline const std::array<IpAddr, 10> kSources4{test::kClient,
                                              IpAddr::v4(198, 51, 100, 7),
                                              IpAddr::v4(198, 51, 100, 8),
                                              IpAddr::v4(192, 0, 2, 66),
                                              IpAddr::v4(10, 80, 1, 99),
                                              IpAddr::v4(127, 0, 0, 1),
                                              IpAddr::v4(0, 0, 0, 0),
                                              IpAddr::v4(255, 255, 255, 255),
                                              IpAddr::v4(224, 0, 0, 5),
                                              IpAddr::v4(240, 0, 0, 1)};
inline const std::array<IpAddr, 9> kSources6{test::kClient6,
                                             *IpAddr::parse("2001:db8:1::7"),
                                             *IpAddr::parse("2001:db8:1::8"),
                                             *IpAddr::parse("2001:db8:66::66"),
                                             *IpAddr::parse("fd00:80:1::99"),
                                             *IpAddr::parse("fe80::2"),
                                             *IpAddr::parse("::1"),
                                             *IpAddr::parse("::"),
                                             *IpAddr::parse("ff02::1")};
inline const IpAddr kBlocked4 = kSources4[3], kBlocked6 = kSources6[3];

// The published states: everything; some objects removed; endpoints exchanged; sources kept that were
// translated, and the reverse.
inline constexpr uint8_t kPublications = 4;
[[nodiscard]] std::vector<test::TestService> services_of(uint8_t publication);

// The settings of the gateway that a program may change.
struct Rules {
    uint8_t publication = 0;  // of Services
    bool has_blocklist = false;
    bool has_present_vips = false;
    bool has_link_vips = false;
    bool has_unresolved = false;  // next hops: endpoints 11 and 13 have no MAC address
    bool rejects_closed_vip_ports = false;
    bool clamps_mss = false;  // to kMssMax, on the cluster's port
    bool aborts_sctp = false;
    bool passes_ip_options = true;
    bool picks_up_midstream = false;
    uint8_t mtu_choice = 0;
    [[nodiscard]] uint16_t mtu() const;
};
inline constexpr uint8_t kMtus = 4;
inline constexpr uint16_t kMssMax = 1000;

// A program begins with `rules` at their defaults; later ones apply to a gateway that has had all
// publications before. Their parts are created once.
[[nodiscard]] const config::Snapshot& snapshot_at_start();
[[nodiscard]] config::Snapshot snapshot_of(const Rules& rules);

// L4 ports with a meaning to some host here, including 0.
[[nodiscard]] std::span<const L4Port> known_ports();

[[nodiscard]] bool is_vip(const IpAddr& address);
// Whether a Service of this publication has this VIP.
[[nodiscard]] bool is_served(const IpAddr& address, uint8_t publication);
// Whether a connection to this frontend may be picked up mid-stream, if the gateway does that.
[[nodiscard]] bool may_be_picked_up(uint8_t publication, const IpAddr& vip, L4Port port);
[[nodiscard]] bool is_own(const IpAddr& address);
[[nodiscard]] bool is_endpoint(const IpAddr& address);
// Whether this is the address of a real client, on the uplink or behind it.
[[nodiscard]] bool is_client(const IpAddr& address);
[[nodiscard]] bool is_in_ranges(const IpAddr& client);
// Addresses that must never be answered: loopback, multicast, broadcast, unspecified, reserved.
[[nodiscard]] bool is_nobodys(const IpAddr& address);

}  // namespace penstock::fuzz
