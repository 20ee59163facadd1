// SPDX-License-Identifier: Apache-2.0
// Transport protocols by their IANA numbers. The protocol of a Service is one of these three.
#pragma once

#include <cstdint>

namespace penstock {

enum class Protocol : uint8_t { Tcp = 6, Udp = 17, Sctp = 132 };

[[nodiscard]] constexpr const char* to_string(Protocol protocol) noexcept {
    switch (protocol) {
        case Protocol::Tcp:
            return "TCP";
        case Protocol::Udp:
            return "UDP";
        case Protocol::Sctp:
            return "SCTP";
    }
    return "unknown";
}

// ICMP and ICMPv6: never the protocol of a Service; the packet path handles them itself.
inline constexpr uint8_t kProtoIcmp = 1;
inline constexpr uint8_t kProtoIcmpv6 = 58;

// A TCP, UDP or SCTP port in host order. Not a NicPort (docs/glossary.md).
using L4Port = uint16_t;

}  // namespace penstock
