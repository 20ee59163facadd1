// Which SNAT addresses and ports a new full-NAT flow may leave with: those that fit its endpoint. source_search.hpp chooses among them.
#pragma once

#include <cstdint>

#include "dataplane/nat/port_rules.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

// The flow that wants a source.
struct BindRequest {
    IpAddr endpoint;
    L4Port endpoint_port = 0;
    Protocol protocol = Protocol::Tcp;
    NicPortId egress;  // the NicPort that leads to the endpoint
    uint64_t client_hash =
        0;  // any even hash of the client's address: a client keeps its SNAT address while that has ports (RFC 4787, REQ-2)
};

// What the host needs for itself on the addresses it shares, as PortRules wants it.
struct HostPorts {
    const uint64_t* node_port_bits = nullptr;
    uint32_t version = 0;  // the snapshot's generation
};

// The ports that may be taken on one SNAT address. Only an address that Linux uses too leaves out the kernel's ephemeral range and
// NodePorts.
[[nodiscard]] PortRules rules_for(const SnatConfig& config, const SnatAddress& address, const HostPorts& host) noexcept;

// Of the addresses that fit the endpoint's family and egress, how many there are and the index of the nth from 0, which must exist. A
// client begins at number client_hash % count and goes round: chosen among those that fit, or the neighbours of an address that does not
// would get its share.
[[nodiscard]] uint8_t count_fitting(const SnatConfig& config, const BindRequest& request) noexcept;
[[nodiscard]] uint8_t fitting_at(const SnatConfig& config, const BindRequest& request, uint32_t nth) noexcept;

// The address that a SourceSearch begins with, or null where none fits; for explain.
[[nodiscard]] const SnatAddress* first_choice(const SnatConfig& config, const BindRequest& request) noexcept;

}  // namespace penstock::nat
