// SPDX-License-Identifier: Apache-2.0
// Addresses as numbers, for intervals. An IPv4 address is its 32 bits, an IPv6 address its 128 bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "dataplane/base/ip.hpp"

namespace penstock::ipam {

// __extension__: ISO C++ has no integer of this width, GCC and clang do.
__extension__ using Number = unsigned __int128;

[[nodiscard]] inline Number to_number(const IpAddr& address) noexcept {
    Number number = 0;
    for (size_t i = address.is_v4() ? 12 : 0; i < 16; ++i) {
        number = number << 8 | address.bytes()[i];
    }
    return number;
}

[[nodiscard]] inline IpAddr to_address(Number number, IpFamily family) noexcept {
    std::array<uint8_t, 16> bytes{};
    for (size_t i = 16; i > 0; --i, number >>= 8) {
        bytes[i - 1] = static_cast<uint8_t>(number & 0xff);
    }
    return family == IpFamily::V4 ? IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15])
                                  : IpAddr::v6(bytes);
}

// Values above 2^64 - 1 become 2^64 - 1.
[[nodiscard]] constexpr uint64_t saturated(Number count) noexcept {
    return static_cast<uint64_t>(std::min<Number>(count, std::numeric_limits<uint64_t>::max()));
}

// Index of a family in arrays of two.
[[nodiscard]] constexpr size_t index_of(IpFamily family) noexcept {
    return family == IpFamily::V4 ? 0 : 1;
}

// Whether some devices mistake the address for that of a network or a broadcast (LB-012).
[[nodiscard]] inline bool is_buggy(const IpAddr& address) noexcept {
    return address.is_v4() && (address.bytes()[15] == 0 || address.bytes()[15] == 255);
}

}  // namespace penstock::ipam
