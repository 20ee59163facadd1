// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/stray_states.hpp"

namespace penstock::gateway {

std::vector<std::pair<std::string, pipeline::StrayState>> stray_states(const config::Snapshot& snapshot) {
    std::vector<std::pair<std::string, pipeline::StrayState>> states;
    if (snapshot.strays == nullptr) {
        return states;
    }
    const shares::Strays& strays = *snapshot.strays;
    for (shares::Strays::GatewayNumber number = 0; strays.gateway(number) != nullptr; ++number) {
        if (!strays.is_self(number)) {
            const shares::Strays::Gateway& gateway = *strays.gateway(number);
            states.emplace_back(gateway.name, pipeline::stray_state(snapshot, gateway));
        }
    }
    return states;
}

}  // namespace penstock::gateway
