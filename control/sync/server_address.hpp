// Where an API server is, from its URL: nobody may take its address by naming it in a Service (XIP-006).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// "https://[2001:db8::1]:6443/path" -> "2001:db8::1"; "" where there is none. Pure.
[[nodiscard]] std::string host_of(std::string_view url);

// All addresses that `host` has now: itself, or what name service says, which may take seconds. NotFound names the host.
[[nodiscard]] Result<std::vector<IpAddr>> addresses_of(const std::string& host);

}  // namespace penstock::sync
