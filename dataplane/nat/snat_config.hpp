// Which addresses and ports new full-NAT flows may take. Part of the snapshot; changes leave live flows alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::nat {

struct PortRange {
    L4Port first = 1024;
    L4Port last = 65535;  // inclusive
    bool operator==(const PortRange&) const = default;
};

struct SnatAddress {
    IpAddr address;
    // The port this address belongs to as a twin's own, or unset where the operator named it with --snat-address. A default address is
    // used only for endpoints that leave through its port.
    NicPortId egress;
    // True where Linux uses the address too: the kernel's ephemeral range and declared NodePorts are left out.
    bool shared_with_host = false;
    bool operator==(const SnatAddress&) const = default;
};

struct SnatConfig {
    std::vector<SnatAddress> addresses;      // at most limits::kSnatAddressesMax; the index is the SNAT address's number
    PortRange ports;                         // --snat-ports
    PortRange host_ephemeral{32768, 60999};  // net.ipv4.ip_local_port_range of the gateway's namespace
    bool operator==(const SnatConfig&) const = default;
};

}  // namespace penstock::nat
