// An address as an interface carries it: the host's own bits and the length of the prefix that is on the link ("192.0.2.1/24").
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

    // "192.0.2.1/24" or "2001:db8::1/64". A bare address, a multicast, loopback or unspecified one, and a length outside the family are
    // refused by name: none of them can be put on a twin with the meaning the operator had in mind.
    static Result<InterfaceAddress> parse(std::string_view text);
    [[nodiscard]] std::string to_string() const;

    auto operator<=>(const InterfaceAddress&) const = default;
};

}  // namespace penstock::drivers
