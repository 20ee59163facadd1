// SPDX-License-Identifier: Apache-2.0
// An IP address with an L4 port: an endpoint, a frontend, a listen address. For control paths; the packet
// path has its own keys.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/base/result.hpp"

namespace penstock {

struct SocketAddress {
    IpAddr address;
    L4Port port = 0;

    // Parses ADDRESS:PORT, with an IPv6 address in brackets. Port 0 is accepted. Error: InvalidArgument,
    // which quotes the text and the rule.
    static Result<SocketAddress> parse(std::string_view text);
    // "10.0.0.1:80", "[2001:db8::1]:80" (RFC 3986, 3.2.2).
    [[nodiscard]] std::string to_string() const;

    constexpr bool operator==(const SocketAddress&) const = default;
    constexpr auto operator<=>(const SocketAddress&) const = default;
};

}  // namespace penstock

template <>
struct std::hash<penstock::SocketAddress> {
    size_t operator()(const penstock::SocketAddress& socket) const noexcept {
        // Not keyed: for control paths only.
        return std::hash<penstock::IpAddr>{}(socket.address) ^ (socket.port * 0x9e3779b97f4a7c15ULL);
    }
};
