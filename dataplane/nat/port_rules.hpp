// What SNAT ports are counted by, and which of them may be handed out.
#pragma once

#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/nat/port_blocks.hpp"
#include "dataplane/nat/reply_rules.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

// A port is unique per such key: busy towards one endpoint, it is free towards the next (RFC 4787, REQ-1 asks less, and 5.1 allows it
// for the traffic to servers that this is).
struct PoolKey {
    IpAddr snat;
    IpAddr endpoint;
    L4Port endpoint_port = 0;
    Protocol protocol = Protocol::Tcp;
    constexpr bool operator==(const PoolKey&) const = default;
};

// Which ports may be handed out. A view, made per call; what it forbids later is not taken any more, and what is live stays.
struct PortRules {
    PortRange range;  // --snat-ports
    PortRange excluded{
        .first = 1,
        .last = 0};  // the host's ephemeral ports where the address is shared; empty where first > last
    // 65,536 bits, port p being bit p % 64 of word p / 64: NodePorts that Services declare. Null: none.
    const uint64_t* node_port_bits = nullptr;
    OwnPorts own;  // PortProposer::own_ports()
    // Any number that changes whenever the above does, as the snapshot's generation; a pool that has marked blocks as full looks again.
    uint32_t version = 0;

    // The ports of a block that may be handed out, as bits.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t usable(uint32_t block) const noexcept {
        const uint32_t first = block * kPortsPerBlock;
        const uint32_t last = first + kPortsPerBlock - 1;
        // Nearly every block lies whole within the range and outside what is excluded. Port 0 is in the block that begins with it.
        const bool is_whole = first != 0 && first >= range.first && last <= range.last &&
                              (first > excluded.last || last < excluded.first);
        const uint64_t node_ports = node_port_bits != nullptr ? node_port_bits[block] : 0;
        return (is_whole ? ~0ULL : usable_in_part(block)) & ~node_ports & own.in_block(block);
    }

 private:
    [[nodiscard]] uint64_t usable_in_part(
        uint32_t block) const noexcept;  // NodePorts and others' ports apart
};

}  // namespace penstock::nat
