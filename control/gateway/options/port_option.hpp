// One --port: 'device=net_af_packet0,iface=veth0;twin=pen0;address=192.0.2.1/24,2001:db8::1/64;mtu=1500'. Fields end with ';' because vdev
// strings are full of commas and '='. Pure.
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

// IPv4 hosts must take packets of 576 bytes (RFC 791); below that nothing a gateway forwards would fit. 9,600 is what the largest jumbo
// frames of NICs carry; a device that takes less refuses by itself, with its own limit.
inline constexpr uint16_t kMtuMin = 576;
inline constexpr uint16_t kMtuMax = 9600;
// Below it Linux takes IPv6 off an interface (RFC 8200, 5).
inline constexpr uint16_t kMtuMinIpv6 = 1280;

// Every host takes segments of 536 bytes (RFC 9293, 3.7.1), so a smaller limit serves nobody; and the largest MTU has no more than this
// behind IPv4's and TCP's headers.
inline constexpr uint16_t kMssMin = 536;
inline constexpr uint16_t kMssMax = kMtuMax - 40;

struct PortOption {
    std::string device;  // a PCI address or a vdev string, checked as far as that goes without hardware
    std::string twin;    // name of the TAP twin: a Linux interface name that is not in use yet
    std::vector<drivers::InterfaceAddress> addresses;
    uint16_t mtu = 1500;  // IP bytes
    uint16_t mss = 0;     // what a SYN may offer at most that comes or leaves by the port; 0: anything
    std::optional<config::ReversePath> reverse_path = {};  // absent: what --reverse-path has
    bool operator==(const PortOption&) const = default;

    // InvalidArgument names the field and the rule: "twin: \"a/b\" is no interface name".
    static Result<PortOption> parse(std::string_view text);
};

// "feasible", "strict", "loose" or "off"; for --reverse-path and the field of the same name.
[[nodiscard]] Result<config::ReversePath> parse_reverse_path(std::string_view text);

// Several ports must not share a device, a twin's name or an address (but a link-local one), and be at most limits::kNicPortsMax.
[[nodiscard]] Status check_ports(const std::vector<PortOption>& ports);

}  // namespace penstock::gateway
