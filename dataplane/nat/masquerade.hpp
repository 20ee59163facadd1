// What is source-translated, and what keeps the client's address.
#pragma once

#include "dataplane/base/ip.hpp"

namespace penstock::nat {

// `keep_source` is what the backend set asks for (NAT-003). A hairpin, where the chosen endpoint is the client itself, is translated all
// the same: the endpoint would answer a packet from its own address without ever sending the reply to the gateway (NAT-005).
[[nodiscard]] constexpr bool must_translate(bool keep_source, const IpAddr& client, const IpAddr& backend) noexcept {
    return !keep_source || client == backend;
}

}  // namespace penstock::nat
