// SPDX-License-Identifier: Apache-2.0
// Address ranges that are never served as frontends (XIP-004) and never used as endpoints (EP-006).
#pragma once

#include <string_view>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

// The reason why `address` cannot be an external or LoadBalancer IP ("a loopback address"), or "" if it can.
[[nodiscard]] std::string_view unfit_as_frontend(const IpAddr& address) noexcept;

// The same for an endpoint. This rule is wider: it excludes all of 240.0.0.0/4, not only the limited
// broadcast address.
[[nodiscard]] std::string_view unfit_as_endpoint(const IpAddr& address) noexcept;

}  // namespace penstock::semantics
