// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/snat.hpp"

namespace penstock::nat {

std::vector<const SnatAddress*> choices_in_turn(const SnatConfig& config, const BindRequest& request) {
    const SnatAddressSet fitting = config.addresses.fitting(request.endpoint, request.egress, request.group);
    std::vector<const SnatAddress*> choices;
    for (uint32_t turn = 0; turn < static_cast<uint32_t>(std::popcount(fitting)); ++turn) {
        choices.push_back(&config.addresses[choice_of(fitting, request.client_hash, turn)]);
    }
    return choices;
}

}  // namespace penstock::nat
