// SPDX-License-Identifier: Apache-2.0
// An address as configured on an interface: the host's address and the length of the on-link prefix
// ("192.0.2.1/24").
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::drivers {

struct InterfaceAddress {
    IpAddr address;
    uint8_t prefix_length = 0;

    // "192.0.2.1/24" or "2001:db8::1/64". InvalidArgument: a bare address; a multicast, loopback or
    // unspecified address; a length outside the family. None of these can be put on a twin with the intended
    // meaning.
    static Result<InterfaceAddress> parse(std::string_view text);
    [[nodiscard]] std::string to_string() const;

    auto operator<=>(const InterfaceAddress&) const = default;
};

}  // namespace penstock::drivers
