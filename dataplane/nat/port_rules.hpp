// SPDX-License-Identifier: Apache-2.0
// The key under which SNAT ports are counted, and the rules for the ports that may be allocated.
#pragma once

#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/nat/port_blocks.hpp"
#include "dataplane/nat/reply_rules.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

// A port is unique per key: in use towards one endpoint, it is free towards another. RFC 4787, REQ-1 requires
// less, and 5.1 allows it for traffic to servers, as it is here.
struct PoolKey {
    IpAddr snat;
    IpAddr endpoint;
    L4Port endpoint_port = 0;
    Protocol protocol = Protocol::Tcp;
    constexpr bool operator==(const PoolKey&) const = default;
};

// The rules for the ports that may be allocated. A view, built for each call. A port that becomes forbidden
// is not allocated again; live connections keep it.
struct PortRules {
    PortRange range;  // --snat-ports
    // The host's ephemeral ports, if the address is shared. Empty if first > last.
    PortRange excluded{.first = 1, .last = 0};
    // 65,536 bits, port p being bit p % 64 of word p / 64: NodePorts declared by Services. Null: none.
    const uint64_t* node_port_bits = nullptr;
    OwnPorts own;               // PortProposer::own_ports()
    uint64_t in_block = ~0ULL;  // ports_in_block(SnatAddress::part)
    // Any number that changes whenever one of the above changes, such as the snapshot's generation. A pool
    // that has marked blocks as full then checks them again.
    uint32_t version = 0;

    // The ports of a block that may be allocated, as bits.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t usable(uint32_t block) const noexcept {
        const uint32_t first = block * kPortsPerBlock;
        const uint32_t last = first + kPortsPerBlock - 1;
        // Nearly every block is completely within the range and outside the excluded ports. Port 0 is in the
        // block that starts with it.
        const bool is_whole = first != 0 && first >= range.first && last <= range.last &&
                              (first > excluded.last || last < excluded.first);
        const uint64_t node_ports = node_port_bits != nullptr ? node_port_bits[block] : 0;
        return (is_whole ? ~0ULL : usable_in_part(block)) & in_block & ~node_ports & own.in_block(block);
    }
    // Whether a single port may be allocated.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool is_usable(L4Port port) const noexcept {
        return (usable(port / kPortsPerBlock) >> port % kPortsPerBlock & 1) != 0;
    }

 private:
    // Without regard to NodePorts and to the ports of other workers and gateways.
    [[nodiscard]] uint64_t usable_in_part(uint32_t block) const noexcept;
};

}  // namespace penstock::nat
