// SPDX-License-Identifier: Apache-2.0
// The form of a server's address: ADDRESS:PORT.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::http {

struct Address {
    IpAddr host;
    uint16_t port = 0;
};

// An IPv6 address is in brackets. InvalidArgument quotes the text and the rule.
[[nodiscard]] Result<Address> parse_address(const std::string& text);

}  // namespace penstock::http
