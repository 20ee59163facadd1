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

}  // namespace penstock::nat
