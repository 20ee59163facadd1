// What is source-translated, and what keeps the client's address.
#pragma once

#include "dataplane/base/ip.hpp"

namespace penstock::nat {

// `keep_source` is what the backend set asks for (NAT-003). A hairpin, where the chosen endpoint is the client itself, is translated all
// the same: the endpoint would answer a packet from its own address without ever sending the reply to the gateway (NAT-005). So is a client
// of the other family, whose address a packet to the endpoint cannot hold (ANN-32).
[[nodiscard]] constexpr bool must_translate(bool keep_source, const IpAddr& client,
                                            const IpAddr& backend) noexcept {
    return !keep_source || client == backend || client.is_v4() != backend.is_v4();
}

}  // namespace penstock::nat
