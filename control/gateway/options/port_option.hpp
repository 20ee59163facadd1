// SPDX-License-Identifier: Apache-2.0
// One --port: 'device=net_af_packet0,iface=veth0;twin=pen0;address=192.0.2.1/24,2001:db8::1/64;mtu=1500'.
// Fields are separated by ';' because vdev strings contain many commas and '='. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"
#include "dataplane/config/packet_policy.hpp"
#include "drivers/host/interface_address.hpp"

namespace penstock::gateway {

// IPv4 hosts must accept packets of 576 bytes (RFC 791); with a smaller MTU no forwarded packet would fit.
// 9,600 is the largest jumbo frame of NICs. A device that supports less reports an error with its own limit.
inline constexpr uint16_t kMtuMin = 576;
inline constexpr uint16_t kMtuMax = 9600;
// Below it Linux disables IPv6 on an interface (RFC 8200, 5).
inline constexpr uint16_t kMtuMinIpv6 = 1280;

// Every host accepts segments of 536 bytes (RFC 9293, 3.7.1), so a smaller limit has no use. The maximum is
// the largest MTU less the IPv4 and TCP headers.
inline constexpr uint16_t kMssMin = 536;
inline constexpr uint16_t kMssMax = kMtuMax - 40;

struct PortOption {
    std::string device;  // PCI address or vdev string, checked as far as possible without hardware
    std::string twin;    // name of the TAP twin: a Linux interface name that is not yet in use
    std::vector<drivers::InterfaceAddress> addresses;
    uint16_t mtu = 1500;  // IP bytes
    uint16_t mss = 0;     // maximum MSS offered by a SYN that arrives or leaves by the port; 0: no limit
    std::optional<config::ReversePath> reverse_path = {};  // absent: the value of --reverse-path
    bool operator==(const PortOption&) const = default;

    // InvalidArgument names the field and the rule: "twin: \"a/b\" is not an interface name".
    static Result<PortOption> parse(std::string_view text);
};

// "feasible", "strict", "loose" or "off". Used for --reverse-path and for the field of the same name.
[[nodiscard]] Result<config::ReversePath> parse_reverse_path(std::string_view text);

// Ports must not share a device, a twin name or an address (link-local addresses excepted). At most
// limits::kNicPortsMax ports.
[[nodiscard]] Status check_ports(const std::vector<PortOption>& ports);

}  // namespace penstock::gateway
