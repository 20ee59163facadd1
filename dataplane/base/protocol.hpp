// Transport protocols by their IANA numbers; a Service's protocol is one of the three.
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

// No Service can have them; the packet path speaks them for itself.
inline constexpr uint8_t kProtoIcmp = 1;
inline constexpr uint8_t kProtoIcmpv6 = 58;

// A TCP, UDP or SCTP port in host order. A NicPort is something else (glossary).
using L4Port = uint16_t;

}  // namespace penstock
