#include "dataplane/nat/snat.hpp"

namespace penstock::nat {

const SnatAddress* first_choice(const SnatConfig& config, const BindRequest& request) noexcept {
    const SnatAddressSet fitting = config.addresses.fitting(request.endpoint, request.egress);
    return fitting == 0 ? nullptr : &config.addresses[choice_of(fitting, request.client_hash, 0)];
}

}  // namespace penstock::nat
