// The source that a new full-NAT flow leaves with: a SNAT address that fits the endpoint and a port of this worker's share, so that the
// reply returns to it (reply_owner.hpp).
#pragma once

#include <cstdint>
#include <expected>

#include "dataplane/base/verdict.hpp"
#include "dataplane/nat/port_pool.hpp"
#include "dataplane/nat/snat_config.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::nat {

struct Binding {
    IpAddr address;
    L4Port port = 0;
    uint8_t index = 0;  // of the address in SnatConfig.addresses
};

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

// NoSnatAddress: none has the endpoint's family and fits its egress. SnatPortsExhausted: those that fit have no port left towards it.
[[nodiscard]] std::expected<Binding, DropReason> bind(PortPool& pool, const SnatConfig& config, const HostPorts& host,
                                                      const BindRequest& request) noexcept;

// The address that bind() tries first, or null where none fits; for explain.
[[nodiscard]] const SnatAddress* first_choice(const SnatConfig& config, const BindRequest& request) noexcept;

// Gives back what bind() gave to a connection whose reverse key this is (backend -> SNAT). Not for connections that keep their source.
void release(PortPool& pool, const packet::FlowKey& reverse) noexcept;

}  // namespace penstock::nat
