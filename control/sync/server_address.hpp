// SPDX-License-Identifier: Apache-2.0
// The address of an API server, from its URL. Services must not claim it as an external IP (XIP-006).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// "https://[2001:db8::1]:6443/path" -> "2001:db8::1"; "" if the URL has no host. Pure.
[[nodiscard]] std::string host_of(std::string_view url);

// All current addresses of `host`: the address itself, or the result of name resolution, which may take
// seconds. NotFound names the host.
[[nodiscard]] Result<std::vector<IpAddr>> addresses_of(const std::string& host);

}  // namespace penstock::sync
