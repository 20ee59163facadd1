#include "dataplane/nat/snat.hpp"

#include <array>

#include "dataplane/base/limits.hpp"

namespace penstock::nat {
namespace {

bool fits(const SnatAddress& snat, const BindRequest& request) noexcept {
    return snat.address.family() == request.endpoint.family() && (!snat.egress.is_set() || snat.egress == request.egress);
}

// The addresses that may be taken, by their index. Chosen among those that fit, or the neighbours of an address that does not would get its
// share.
struct Fitting {
    std::array<uint8_t, limits::kSnatAddressesMax> index;
    uint32_t count = 0;
    Fitting(const SnatConfig& config, const BindRequest& request) noexcept {
        for (size_t i = 0; i < config.addresses.size() && count < index.size(); ++i) {
            if (fits(config.addresses[i], request)) {
                index[count++] = static_cast<uint8_t>(i);
            }
        }
    }
    [[nodiscard]] uint8_t at(uint32_t turn, uint64_t client_hash) const noexcept { return index[(client_hash % count + turn) % count]; }
};

}  // namespace

const SnatAddress* first_choice(const SnatConfig& config, const BindRequest& request) noexcept {
    const Fitting fitting(config, request);
    return fitting.count == 0 ? nullptr : &config.addresses[fitting.at(0, request.client_hash)];
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
    const Fitting fitting(config, request);
    for (uint32_t turn = 0; turn < fitting.count; ++turn) {
        const uint8_t index = fitting.at(turn, request.client_hash);
        const SnatAddress& snat = config.addresses[index];
        const PoolKey key{snat.address, request.endpoint, request.endpoint_port, request.protocol};
        if (const std::optional<L4Port> port = pool.take(key, rules_for(config, snat, host))) {
            return Binding{snat.address, *port, index};
        }
    }
    return std::unexpected(fitting.count == 0 ? DropReason::NoSnatAddress : DropReason::SnatPortsExhausted);
}

void release(PortPool& pool, const packet::FlowKey& reverse) noexcept {
    pool.give_back({reverse.destination, reverse.source, reverse.source_port, reverse.protocol}, reverse.destination_port);
}

}  // namespace penstock::nat
