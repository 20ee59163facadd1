// SPDX-License-Identifier: Apache-2.0
// Decides whether a flow is source-translated or keeps the client's address.
#pragma once

#include "dataplane/base/ip.hpp"

namespace penstock::nat {

// `keep_source` is the setting of the backend set (NAT-003). A hairpin flow (the selected endpoint is the
// client itself) is translated in any case. Otherwise the endpoint would answer a packet from its own address
// without sending the reply to the gateway (NAT-005). A client of the other family is translated too, because
// its address does not fit into a packet to the endpoint (ANN-32).
[[nodiscard]] constexpr bool must_translate(bool keep_source, const IpAddr& client,
                                            const IpAddr& backend) noexcept {
    return !keep_source || client == backend || client.is_v4() != backend.is_v4();
}

}  // namespace penstock::nat
