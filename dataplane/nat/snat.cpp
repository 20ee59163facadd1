#include "dataplane/nat/snat.hpp"

namespace penstock::nat {
namespace {

bool fits(const SnatAddress& snat, const BindRequest& request) noexcept {
    return snat.address.family() == request.endpoint.family() && (!snat.egress.is_set() || snat.egress == request.egress);
}

}  // namespace

uint8_t count_fitting(const SnatConfig& config, const BindRequest& request) noexcept {
    uint8_t count = 0;
    for (const SnatAddress& snat : config.addresses) {
        count = static_cast<uint8_t>(count + (fits(snat, request) ? 1 : 0));
    }
    return count;
}

uint8_t fitting_at(const SnatConfig& config, const BindRequest& request, uint32_t nth) noexcept {
    uint8_t index = 0;
    while (!fits(config.addresses[index], request) || nth-- > 0) {
        ++index;
    }
    return index;
}

const SnatAddress* first_choice(const SnatConfig& config, const BindRequest& request) noexcept {
    const uint32_t fitting = count_fitting(config, request);
    return fitting == 0 ? nullptr : &config.addresses[fitting_at(config, request, static_cast<uint32_t>(request.client_hash % fitting))];
}

PortRules rules_for(const SnatConfig& config, const SnatAddress& address, const HostPorts& host) noexcept {
    PortRules rules{.range = config.ports, .version = host.version};
    if (address.shared_with_host) {
        rules.excluded = config.host_ephemeral;
        rules.node_port_bits = host.node_port_bits;
    }
    return rules;
}

std::expected<Binding, DropReason> bind(PortPool& pool, const SnatConfig& config, const HostPorts& host,
                                        const BindRequest& request) noexcept {
    const uint32_t fitting = count_fitting(config, request);
    for (uint32_t turn = 0; turn < fitting; ++turn) {
        const uint8_t index = fitting_at(config, request, static_cast<uint32_t>((request.client_hash % fitting + turn) % fitting));
        const SnatAddress& snat = config.addresses[index];
        const PoolKey key{snat.address, request.endpoint, request.endpoint_port, request.protocol};
        if (const std::optional<L4Port> port = pool.take(key, rules_for(config, snat, host))) {
            return Binding{snat.address, *port, index};
        }
    }
    return std::unexpected(fitting == 0 ? DropReason::NoSnatAddress : DropReason::SnatPortsExhausted);
}

void release(PortPool& pool, const packet::FlowKey& reverse) noexcept {
    pool.give_back({reverse.destination, reverse.source, reverse.source_port, reverse.protocol}, reverse.destination_port);
}

}  // namespace penstock::nat
