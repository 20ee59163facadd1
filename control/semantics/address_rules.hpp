// Addresses that nothing may ever be served on, or forwarded to, because of what they are (XIP-004, EP-006).
#pragma once

#include <string_view>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

// What makes `address` unfit to be an external or LoadBalancer IP ("a loopback address"); "" where it is fit.
[[nodiscard]] std::string_view unfit_as_frontend(const IpAddr& address) noexcept;

// Likewise for an endpoint. Wider: all of 240.0.0.0/4, not only the limited broadcast.
[[nodiscard]] std::string_view unfit_as_endpoint(const IpAddr& address) noexcept;

}  // namespace penstock::semantics
